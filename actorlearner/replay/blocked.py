"""The fractions of the time in which the rate limiter blocks inserts and sampling."""

import dataclasses
import time
from collections.abc import Callable

from actorlearner.replay.status import ReplayStatus


@dataclasses.dataclass(frozen=True)
class BlockedFractions:
    """Fractions of the time between two readings of replay's status; their sum is at most 1.

    Attributes:
      inserts: time in which an actor's item waited until the learner had sampled more.
      sampling: time in which a request of the learner waited until actors had inserted more.
    """

    inserts: float
    sampling: float


class BlockedTime:
    """Turns the blocked seconds that a replay server counts into fractions of the time between readings."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts without a reading.

        Args:
          clock: returns the time in seconds.
        """
        self._clock = clock
        self._last: tuple[float, ReplayStatus] | None = None

    def update(self, status: ReplayStatus) -> BlockedFractions | None:
        """Adds a reading.

        Args:
          status: the current status of replay.

        Returns:
          The fractions since the last reading; None for the first one, or if the server was restarted.
        """
        now = self._clock()
        last, self._last = self._last, (now, status)
        if last is None:
            return None
        elapsed_s = max(now - last[0], 1e-9)
        inserts = status.inserts_barred_s - last[1].inserts_barred_s
        sampling = status.sampling_barred_s - last[1].sampling_barred_s
        if inserts < 0 or sampling < 0:
            return None
        return BlockedFractions(min(1.0, inserts / elapsed_s), min(1.0, sampling / elapsed_s))
