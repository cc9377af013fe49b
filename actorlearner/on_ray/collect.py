"""A collect actor on Ray: the Ray actor that runs its process on a node, and the supervisor's handle."""

import dataclasses
import math
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from actorlearner.errors import ERROR_PREFIX, EXIT_USAGE
from actorlearner.local.child import Child, SupervisedProcess
from actorlearner.network.certificate import write_certificate
from actorlearner.process.role_names import COLLECT_ACTOR
from actorlearner.process.spawn import die_with_parent, module_command
from actorlearner.records.disk import Appender, is_full
from actorlearner.records.notify import NOTIFY_VARIABLE
from actorlearner.records.run_directory import RunDirectory

_POLL_S = 1.0
_CONCURRENT_CALLS = 2  # A signal does not wait for a poll.
_KILLED = -int(signal.SIGKILL)
_NOT_FOR_ROLES = "OMP_NUM_THREADS"  # Ray sets it; a role's threads come from the configuration.


@dataclasses.dataclass(frozen=True)
class Task:
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
      exit_code: the exit code, negative for a signal; None while the process runs.
      pid: the id of the process on its node.
      ready: whether the role has reported that it is ready.
      start_up: how long each phase of its start took.
      error: the message with which the role failed; else empty.
      may_be_restarted: False after an error that a new process would repeat.
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

    def __init__(self, name: str, index: int, task: Task, last_record: bytes, heartbeat: bytes) -> None:
        """Starts the process.

        Args:
          name: the name of the role's process.
          index: the index of the collect actor.
          task: the data for this node.
          last_record: the last line of the metrics of the previous actor with this index, whose counters
            continue; empty for the first one.
          heartbeat: what a dead process of this role left behind, from which the restarts are counted.
        """
        if os.path.isdir(task.folder):
            os.chdir(task.folder)
        self._temporary = tempfile.TemporaryDirectory(prefix="actorlearner-", ignore_cleanup_errors=True)
        here = Path(self._temporary.name)
        (here / "experiment.yaml").write_text(task.config, encoding="utf-8")
        self._certificate = here / "run.pem"
        write_certificate(self._certificate, task.certificate)
        self._name = name
        self._directory = RunDirectory(here / "run")
        metrics = self._directory.metrics(f"collect-{index}")
        for path in (metrics, self._directory.log(name)):
            path.parent.mkdir(parents=True)
        metrics.write_bytes(last_record)
        if heartbeat:
            self._directory.heartbeats.mkdir()
            self._directory.heartbeat(name).write_bytes(heartbeat)
        self._sent = {metrics: len(last_record)}
        arguments = {
            "--config": here / "experiment.yaml",
            "--run_dir": self._directory.path,
            "--replay_address": task.replay_address,
            "--actor_index": index,
            "--tls": self._certificate,
        }
        words = [str(word) for pair in arguments.items() for word in pair]
        self._child = Child(name, lambda fd: self._launch(words, fd), self._directory.log(name))

    def _launch(self, arguments: list[str], notify_fd: int) -> "subprocess.Popen[bytes]":
        variables = {name: value for name, value in os.environ.items() if name != _NOT_FOR_ROLES}
        parent = os.getpid()
        with self._directory.log(self._name).open("ab") as log:
            return subprocess.Popen(
                module_command("actorlearner", COLLECT_ACTOR, *arguments),
                env=variables | {NOTIFY_VARIABLE: str(notify_fd)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[notify_fd],
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),
            )

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
            heartbeat=_content(self._directory.heartbeat(self._name)),
        )
        if code is not None:
            self._temporary.cleanup()
        return report

    def _added(self, *, whole: bool) -> dict[str, bytes]:
        """Returns the bytes added to each file since the last call; `whole` leaves out incomplete lines."""
        root = self._directory.path
        added = {}
        for path in (
            self._directory.events,
            *root.glob("metrics/*.jsonl"),
            *root.glob("logs/*.log"),
            *root.glob("summaries/*/*"),
        ):
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(self._sent.get(path, 0))
                new = file.read()
            if whole and path.suffix in (".jsonl", ".log"):
                new = new[: new.rfind(b"\n") + 1]
            if new:
                self._sent[path] = self._sent.get(path, 0) + len(new)
                added[str(path.relative_to(root))] = new
        return added

    def send(self, number: int) -> None:
        """Sends a signal to the process."""
        self._child.send(signal.Signals(number))


class RayChild(SupervisedProcess):
    """A collect actor on some node; copies the files that it writes to the run's directory."""

    def __init__(self, name: str, index: int, task: Task, directory: RunDirectory) -> None:
        """Asks Ray for the actor, which starts it as soon as a node has a core for it; does not block."""
        super().__init__(name, directory.log(name))
        self._exit_code: int | None = None
        self._reason = ""
        self._pid = 0
        self._placed_at: float | None = None
        self._directory = directory
        self._files: dict[str, Appender] = {}
        actor = ray.remote(CollectActor).options(num_cpus=1, max_concurrency=_CONCURRENT_CALLS)
        metrics = directory.metrics(f"collect-{index}")
        recorded = _content(metrics).splitlines(keepends=True)
        self._actor: Any = actor.remote(
            name, index, task, recorded[-1] if recorded else b"", _content(directory.heartbeat(name))
        )
        self._report = self._actor.poll.remote()

    @property
    def started(self) -> float:
        """When the first report arrived; until then now, because waiting for a node must not time out."""
        return time.monotonic() if self._placed_at is None else self._placed_at

    @property
    def pid(self) -> int:
        """The id of the process on its node; 0 before the first report."""
        return self._pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs or waits for a node."""
        return self._exit_code

    @property
    def reason(self) -> str:
        """Why the process ended; empty while it runs without an error."""
        return self._reason or super().reason

    def receive(self) -> None:
        """Processes the report that has arrived, if any, and asks for the next; does not block."""
        if self.exit_code is None and ray.wait([self._report], timeout=0)[0]:
            try:
                self._take(ray.get(self._report))
            except RayActorError as error:
                self._end(_KILLED, "its node or its Ray actor is gone")
                if error.__cause__ is not None:
                    self.error = _one_line(error.__cause__)
            except RayError as error:
                self.error = _one_line(error)
                self._end(_KILLED)

    def _take(self, report: Report) -> None:
        self._placed_at = self._placed_at or time.monotonic()
        self._pid, self.ready, self.start_up = report.pid, report.ready, report.start_up
        self.error, self.may_be_restarted = report.error, report.may_be_restarted
        self.warnings += report.warnings
        for name, new in report.added.items():
            if name not in self._files:
                self._files[name] = Appender(self._directory.path / name, f"files of {self.name}")
            self._files[name].append(new)
        heartbeat = self._directory.heartbeat(self.name)
        if report.heartbeat:
            heartbeat.parent.mkdir(exist_ok=True)
            self._beat(heartbeat, report.heartbeat)
        if report.exit_code is None:
            self._report = self._actor.poll.remote()
        else:
            if not report.heartbeat:  # A role that was killed or has crashed leaves it.
                heartbeat.unlink(missing_ok=True)
            self._end(report.exit_code)

    def _beat(self, path: Path, heartbeat: bytes) -> None:
        try:
            path.write_bytes(heartbeat)
        except OSError as error:
            if not is_full(error):  # A full disk never ends a role.
                raise

    def _end(self, code: int, reason: str = "") -> None:
        self._exit_code, self._reason = code, reason
        for file in self._files.values():
            file.flush()
        ray.kill(self._actor)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process has ended; cancels a process that still waits for a node."""
        if self._placed_at is None:
            self._end(_KILLED, "it was not started")
        elif self.exit_code is None:
            self._actor.send.remote(int(number))

    def kill(self) -> None:
        """Kills the process; does not wait for its node."""
        if self.exit_code is None:
            self._end(_KILLED, "killed")

    def wait(self, timeout_s: float) -> bool:
        """Blocks until the process has ended, at most `timeout_s`; returns whether it has ended."""
        deadline = time.monotonic() + timeout_s
        while self.exit_code is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            ray.wait([self._report], timeout=None if left_s == math.inf else left_s)
            self.receive()
        return True

    def close(self) -> None:
        """No-op: its Ray actor was killed at its end."""


def _content(path: Path) -> bytes:
    """Returns the content of a file; empty without the file, which its writer may be removing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
