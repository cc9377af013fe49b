"""The supervisor's handle of a collect actor that Ray runs on some node."""

import math
import signal
import time
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from actorlearner.local.child import SupervisedProcess
from actorlearner.on_ray.collect_actor import CollectActor, CollectSettings, Report, content
from actorlearner.records.disk import Appender, is_full
from actorlearner.records.events import DIED, EventLog
from actorlearner.records.run_directory import RunDirectory

_CONCURRENT_CALLS = 2  # A signal does not wait for a poll.
_KILLED = -int(signal.SIGKILL)


class RayChild(SupervisedProcess):
    """A collect actor on some node; copies the files that it writes to the run's directory."""

    def __init__(self, name: str, index: int, settings: CollectSettings, directory: RunDirectory) -> None:
        """Asks Ray for the actor, which starts it as soon as a node has a core for it; does not block."""
        super().__init__(name, directory.log(name))
        self._exit_code: int | None = None
        self._reason = ""
        self._pid = 0
        self.started = math.inf  # Until the first report: waiting for a node must not time out.
        self._directory = directory
        self._files: dict[str, Appender] = {}
        actor = ray.remote(CollectActor).options(num_cpus=1, max_concurrency=_CONCURRENT_CALLS)
        records = content(directory.metrics(f"collect-{index}")).splitlines(keepends=True)
        left = (records[-1] if records else b"", content(directory.heartbeat(name)))
        self._actor: Any = actor.remote(name, index, settings, *left)
        self._report = self._actor.poll.remote()

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
                if error.actor_init_failed:  # For example, this package is not installed on its node.
                    self._fail(str(error).strip().rpartition("\n")[2])
                else:
                    self._reason = "its node or its Ray actor is gone"
                    self._end(_KILLED)
            except RayError as error:
                self._fail(" ".join(str(error).split()) or type(error).__name__)

    def _take(self, report: Report) -> None:
        self.started = min(self.started, time.monotonic())
        self._pid, self.ready, self.start_up = report.pid, report.ready, report.start_up
        self.error, self.may_be_restarted = report.error, report.may_be_restarted
        self.warnings += report.warnings
        for name, new in report.added.items():
            if name not in self._files:
                self._files[name] = Appender(self._directory.path / name, f"files of {self.name}")
            self._files[name].append(new)
        heartbeat = self._directory.heartbeat(self.name)
        if report.heartbeat:
            _write_heartbeat(heartbeat, report.heartbeat)
        elif report.exit_code is not None:  # A role that was killed or has crashed leaves it.
            heartbeat.unlink(missing_ok=True)
        if report.exit_code is None:
            self._report = self._actor.poll.remote()
        else:
            self._end(report.exit_code)

    def _fail(self, error: str) -> None:
        """Ends with an error of Ray, which no role has recorded as an event."""
        self.error = error
        EventLog(self._directory.events, self.name).record(DIED, error)
        self._end(_KILLED)

    def _end(self, code: int) -> None:
        self._exit_code = code
        for file in self._files.values():
            file.flush()
        ray.kill(self._actor)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process has ended; cancels a process that still waits for a node."""
        if self.started == math.inf:
            self._end(_KILLED)
        elif self.exit_code is None:
            self._actor.send.remote(int(number))

    def kill(self) -> None:
        """Kills the process; does not wait for its node."""
        if self.exit_code is None:
            self._end(_KILLED)

    def wait(self, timeout_s: float) -> bool:
        """Blocks until the process has ended, at most `timeout_s`; returns whether it has ended."""
        deadline = time.monotonic() + timeout_s
        while self.exit_code is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            ray.wait([self._report], timeout=left_s)
            self.receive()
        return True

    def close(self) -> None:
        """No-op: its Ray actor was killed at its end."""


def _write_heartbeat(path: Path, heartbeat: bytes) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(heartbeat)
    except OSError as error:
        if not is_full(error):  # A full disk never ends a role.
            raise
