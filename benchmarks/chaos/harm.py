"""Harms the processes of a run by a schedule."""

import dataclasses
import signal
import time
from collections.abc import Iterator, Sequence

from actorlearner.local.supervisor import Supervisor
from benchmarks.chaos.link import Links
from benchmarks.chaos.schedule import Harm, Kind


@dataclasses.dataclass
class Done:
    """A harm that has begun.

    Attributes:
      harm: which.
      began, ended: Unix seconds; `ended` is None while it lasts.
      pid: of the process that was killed or stopped; None of one that was cut off.
    """

    harm: Harm
    began: float
    ended: float | None = None
    pid: int | None = None


class Harmer:
    """Starts each harm when it is due, and ends it in time.

    Attributes:
      done: the harms so far, in order.
    """

    def __init__(self, supervisor: Supervisor, links: Links) -> None:
        """Does nothing before `begin`."""
        self._waiting: list[Harm] = []
        self._supervisor = supervisor
        self._links = links
        self._began: float | None = None
        self.done: list[Done] = []

    def begin(self, schedule: Sequence[Harm]) -> None:
        """Starts a schedule now."""
        self._waiting = list(schedule)
        self._began = time.monotonic()

    @property
    def begun(self) -> bool:
        """Whether the schedule has started."""
        return self._began is not None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the schedule started; 0 before."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    @property
    def killed(self) -> set[int]:
        """The pids of the processes that were killed."""
        return {each.pid for each in self.done if each.harm.kind is Kind.KILL and each.pid is not None}

    @property
    def left(self) -> int:
        """The number of harms still to come."""
        return len(self._waiting)

    def check(self) -> Iterator[str]:
        """Starts and ends harms that are due; yields a line for each. Call it several times a second.

        A harm to a role that has no process just then waits until it has one.
        """
        for done in self.done:
            if done.ended is None and time.time() - done.began >= done.harm.length_s:
                self._end(done)
        for harm in [harm for harm in self._waiting if harm.at_s <= self.elapsed_s]:
            if self._supervisor.child(harm.role).exit_code is None:
                self._waiting.remove(harm)
                self._begin(harm)
                yield f"{self.elapsed_s:6.1f} s  {harm}"

    def end(self) -> None:
        """Ends every harm that is still going on."""
        for done in self.done:
            if done.ended is None:
                self._end(done)

    def _begin(self, harm: Harm) -> None:
        child = self._supervisor.child(harm.role)
        done = Done(harm, time.time())
        self.done.append(done)
        if harm.kind is Kind.CUT:
            self._links.of(harm.role).cut()
            return
        done.pid = child.pid
        if harm.kind is Kind.STOP:
            child.send(signal.SIGSTOP)
        else:
            child.kill()
            done.ended = time.time()

    def _end(self, done: Done) -> None:
        if done.harm.kind is Kind.CUT:
            self._links.of(done.harm.role).heal(drop=done.harm.drops)
        else:
            # Only the stopped process: its replacement was never stopped.
            child = self._supervisor.child(done.harm.role)
            if child.pid == done.pid:
                child.send(signal.SIGCONT)
        done.ended = time.time()
