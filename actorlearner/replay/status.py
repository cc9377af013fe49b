"""The status of the experience table, in env steps, and how long its rate limiter blocked either side."""

import dataclasses
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from reverb import reverb_types


@dataclasses.dataclass(frozen=True)
class ReplayStatus:
    """The experience table at one moment, in env steps; samples are in the unit of `learn.batch_size`.

    Counts are multiples of an item. The last item of a stopped actor may be partly filled; it counts as full.

    Attributes:
      size: transitions in the table.
      inserts: transitions inserted so far, which is the number of env steps of all actors.
      samples: transitions sampled by the learner so far.
      inserts_blocked_s, sampling_blocked_s: seconds since the server's start in which its rate limiter
        blocked inserts of actors, and requests of the learner. For several servers, their mean.
    """

    size: int
    inserts: int
    samples: int
    inserts_blocked_s: float = dataclasses.field(default=0.0, compare=False)
    sampling_blocked_s: float = dataclasses.field(default=0.0, compare=False)

    @property
    def samples_per_insert(self) -> float:
        """Sampled transitions per inserted transition; 0 before the first insert."""
        return self.samples / self.inserts if self.inserts else 0.0


def status_of(table: reverb_types.TableInfo, env_steps_per_item: int, samples_per_item: int) -> ReplayStatus:
    """Converts the entry of an experience table in `server_info`; the factors are the layout's attributes."""
    limiter, worker = table.rate_limiter_info, table.table_worker_time
    return ReplayStatus(
        size=table.current_size * env_steps_per_item,
        inserts=limiter.insert_stats.completed * env_steps_per_item,
        samples=limiter.sample_stats.completed * samples_per_item,
        # While the thread that serves the table waits for sampling, inserts are blocked; and vice versa.
        inserts_blocked_s=worker.waiting_for_sampling_ms / 1000,
        sampling_blocked_s=worker.waiting_for_inserts_ms / 1000,
    )


class BlockedFractions(NamedTuple):
    """Fractions of the time between two polls in which the rate limiter blocked, each at most 1."""

    inserts: float
    sampling: float


class BlockedTime:
    """Turns the blocked seconds that a replay server counts into fractions of the time between polls."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts without a status; `clock` returns the time in seconds."""
        self._clock = clock
        self._last: tuple[float, ReplayStatus] | None = None

    def update(self, status: ReplayStatus) -> BlockedFractions | None:
        """Returns the fractions since the last status; None for the first, or if the server was restarted."""
        now = self._clock()
        last, self._last = self._last, (now, status)
        if last is None:
            return None
        elapsed_s = max(now - last[0], 1e-9)
        inserts = status.inserts_blocked_s - last[1].inserts_blocked_s
        sampling = status.sampling_blocked_s - last[1].sampling_blocked_s
        if inserts < 0 or sampling < 0:
            return None
        return BlockedFractions(min(1.0, inserts / elapsed_s), min(1.0, sampling / elapsed_s))


class ReplayStatusSource(Protocol):
    """Reports the status of replay: a ReplayServer, or several WatchedServers.

    Raises:
      reverb_calls.UNREACHABLE: a server does not answer.
      RunError: a server of another run has replaced one of this run.
    """

    def status(self, timeout_s: int) -> ReplayStatus:
        """Returns the combined status of all servers; blocks for `timeout_s` at most."""

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """Returns the transitions in each server, by its address; blocks for `timeout_s` at most."""
