"""The Ray actor that runs the process of one collect actor on a node of the cluster."""

import collections
import dataclasses
import functools
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from actorlearner.errors import ERROR_PREFIX, EXIT_USAGE
from actorlearner.local.child import Child
from actorlearner.network.certificate import write_certificate
from actorlearner.process.role_names import COLLECT_ACTOR
from actorlearner.process.spawn import die_with_parent, module_command
from actorlearner.records.notify import NOTIFY_VARIABLE
from actorlearner.records.run_directory import RunDirectory

_POLL_S = 1.0
_COPIED = ("events.jsonl", "metrics/*.jsonl", "logs/*.log", "summaries/*/*")
_LINES = (".jsonl", ".log")
_NOT_FOR_ROLES = "OMP_NUM_THREADS"  # Ray sets it; a role's threads come from the configuration.


@dataclasses.dataclass(frozen=True)
class CollectSettings:
    """The data that a node gets to run a collect actor.

    Attributes:
      config: the experiment, as YAML.
      certificate: the run's certificate and key.
      replay_address: HOST:PORT at which the replay server accepts TLS.
      folder: the command's working directory, which may hold the user's modules. A node
        without this folder ignores it.
    """

    config: str
    certificate: bytes
    replay_address: str
    folder: str


@dataclasses.dataclass(frozen=True)
class Report:
    """The state of a collect actor's process, and its new output since the last report.

    Attributes:
      exit_code, pid, ready, start_up, error, may_be_restarted: of a SupervisedProcess.
      warnings: the warnings since the last report.
      added: the bytes appended to each file since the last report, by its path in the run directory.
      heartbeat: the content of the heartbeat file; empty while there is none, and after a normal end.
    """

    exit_code: int | None
    pid: int
    ready: bool
    start_up: str
    error: str
    may_be_restarted: bool
    warnings: list[str]
    added: dict[str, bytes]
    heartbeat: bytes


class CollectActor:
    """The Ray actor: runs the role as a process, with a run directory of its own on the node."""

    def __init__(
        self, name: str, index: int, settings: CollectSettings, last_record: bytes, heartbeat: bytes
    ) -> None:
        """Starts the process.

        Args:
          name: the name of the role's process.
          index: the index of the collect actor.
          settings: the data for this node.
          last_record: the last line of the metrics of the previous actor with this index, whose counters
            continue; empty for the first one.
          heartbeat: what a dead process of this role left behind, from which the restarts are counted.
        """
        if os.path.isdir(settings.folder):
            os.chdir(settings.folder)
        self._temporary = tempfile.TemporaryDirectory(prefix="actorlearner-", ignore_cleanup_errors=True)
        here = Path(self._temporary.name)
        config_file, self._certificate = here / "experiment.yaml", here / "run.pem"
        config_file.write_text(settings.config, encoding="utf-8")
        write_certificate(self._certificate, settings.certificate)
        self._directory = RunDirectory(here / "run")
        metrics, log = self._directory.metrics(f"collect-{index}"), self._directory.log(name)
        self._heartbeat = self._directory.heartbeat(name)
        for path in (metrics, log, self._heartbeat):
            path.parent.mkdir(parents=True)
        metrics.write_bytes(last_record)
        if heartbeat:
            self._heartbeat.write_bytes(heartbeat)
        self._sent = collections.Counter({metrics: len(last_record)})
        command = module_command(
            *("actorlearner", COLLECT_ACTOR),
            *("--config", str(config_file)),
            *("--run_dir", str(self._directory.path)),
            *("--replay_address", settings.replay_address),
            *("--actor_index", str(index)),
            *("--tls", str(self._certificate)),
        )
        self._child = Child(name, functools.partial(_launch, command, log), log)

    def poll(self) -> Report:
        """Blocks for a second, or until the process has ended; returns the next report."""
        child = self._child
        child.wait(_POLL_S)
        code = child.exit_code
        child.receive()
        # A ready role no longer needs the file. If Ray kills this actor later, its folder stays on the node:
        # the secret must not.
        if child.ready:
            self._certificate.unlink(missing_ok=True)
        warnings, child.warnings = child.warnings, []
        error = child.error
        if code == EXIT_USAGE and not error:  # It ended before it could report an error.
            last_line = child.log.read_text("utf-8", "replace").strip().rpartition("\n")[2]
            error = last_line.removeprefix(ERROR_PREFIX)
        report = Report(
            exit_code=code,
            pid=child.pid,
            ready=child.ready,
            start_up=child.start_up,
            error=error,
            may_be_restarted=child.may_be_restarted,
            warnings=warnings,
            added=self._added(whole=code is None),
            heartbeat=content(self._heartbeat),
        )
        if code is not None:
            self._temporary.cleanup()
        return report

    def _added(self, *, whole: bool) -> dict[str, bytes]:
        """Returns the bytes added to each file since the last call; `whole` leaves out incomplete lines."""
        root = self._directory.path
        added = {}
        for path in (path for pattern in _COPIED for path in root.glob(pattern)):
            with path.open("rb") as file:
                file.seek(self._sent[path])
                new = file.read()
            if whole and path.suffix in _LINES:
                new = new[: new.rfind(b"\n") + 1]
            if new:
                self._sent[path] += len(new)
                added[str(path.relative_to(root))] = new
        return added

    def send(self, number: int) -> None:
        """Sends a signal to the process."""
        self._child.send(signal.Signals(number))


def _launch(command: list[str], log: Path, notify_fd: int) -> "subprocess.Popen[bytes]":
    variables = {name: value for name, value in os.environ.items() if name != _NOT_FOR_ROLES}
    parent = os.getpid()
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env=variables | {NOTIFY_VARIABLE: str(notify_fd)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[notify_fd],
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),
        )


def content(path: Path) -> bytes:
    """Returns the content of a file; empty without the file, which its writer may be removing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
