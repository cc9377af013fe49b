"""Observes a run: its processes, when they become ready, and the deaths of replay servers."""

import dataclasses
import datetime
import time
from pathlib import Path

from actorlearner.errors import EXIT_TERMINATED
from actorlearner.local.child import SupervisedProcess
from actorlearner.local.supervisor import Supervisor
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.checkpoints import newest_checkpoint
from benchmarks.chaos.schedule import SERVER


@dataclasses.dataclass(frozen=True)
class ServerLoss:
    """The death of a replay server.

    Attributes:
      saved_at: when the checkpoint that the next one restores was begun, in Unix seconds; 0 without any.
      died_at: when the death was seen, in Unix seconds.
    """

    saved_at: float
    died_at: float


class Watch:
    """Observes every process of a run.

    Attributes:
      ready: (role, Unix seconds) of each process that became ready.
      losses: the deaths of replay servers.
      unplanned_deaths: a line for each death that was not caused on purpose.
      elapsed_s: how long the run took; 0 before its end.
      ended: the end of the run, in Unix seconds; 0 before.
    """

    def __init__(self, supervisor: Supervisor, directory: RunDirectory) -> None:
        """Starts without observations."""
        self._supervisor = supervisor
        self._checkpoints = directory.replay_checkpoints
        self._seen_ready: set[SupervisedProcess] = set()
        self._seen_ended: set[SupervisedProcess] = set()
        self.ready: list[tuple[str, float]] = []
        self.losses: list[ServerLoss] = []
        self.unplanned_deaths: list[str] = []
        self.elapsed_s = 0.0
        self.ended = 0.0
        self._began = time.monotonic()

    @property
    def roles(self) -> dict[int, str]:
        """The role of each process so far, by its pid."""
        pids = {_pid(child): child.name for child in self._supervisor.started}
        return {pid: name for pid, name in pids.items() if pid is not None}

    def poll(self, killed: set[int]) -> None:
        """Records changes. Call it several times a second, before dead roles are replaced.

        Args:
          killed: the pids of processes that were killed on purpose.
        """
        for child in self._supervisor.started:
            if child.ready and child not in self._seen_ready:
                self._seen_ready.add(child)
                self.ready.append((child.name, time.time()))
            if child.exit_code is not None and child not in self._seen_ended:
                self._seen_ended.add(child)
                self._ended(child, _pid(child) in killed)

    def end(self) -> None:
        """Records the end of the run, before the remaining processes are ended."""
        self.ended = time.time()
        self.elapsed_s = time.monotonic() - self._began

    @property
    def saved_at_end(self) -> bool:
        """Whether the replay server ended on request, which it does after saving."""
        return self._supervisor.child(SERVER).exit_code == EXIT_TERMINATED

    def _ended(self, child: SupervisedProcess, on_purpose: bool) -> None:
        if child.name == SERVER:
            checkpoint = newest_checkpoint(self._checkpoints)
            self.losses.append(ServerLoss(_saved_at(checkpoint[0]) if checkpoint else 0.0, time.time()))
        if child.exit_code != 0 and not on_purpose:
            child.receive()  # Reads its last messages.
            self.unplanned_deaths.append(f"{child.name} died by itself: {child.reason}")


def _pid(child: SupervisedProcess) -> int | None:
    """Returns the pid; None if the fork server died before forking it."""
    try:
        return child.pid
    except ProcessLookupError:
        return None


def still_running(sessions: set[int]) -> list[int]:
    """Returns the ids of the processes of these sessions, without zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) in sessions and state != "Z":
                    found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue  # It ended meanwhile.
    return found


def _saved_at(checkpoint: Path) -> float:
    """Returns the Unix time, from its name, at which a checkpoint began; it holds all earlier inserts."""
    return datetime.datetime.fromisoformat(checkpoint.name).timestamp()
