"""Which fraction of the time a rate limiter bars inserts, and sampling."""

import dataclasses
import time
from collections.abc import Callable

from actorlearner.replay.status import ReplayStatus


@dataclasses.dataclass(frozen=True)
class BlockedFractions:
    """Of the time between two looks at replay; both together are 1 at most.

    Attributes:
      inserts: in which an actor's item waited until more was sampled.
      sampling: in which a request of the learner's waited until more was inserted.
    """

    inserts: float
    sampling: float


class BlockedTime:
    """Turns the seconds that a replay server counts into fractions of the time since the last look."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Has not looked yet.

        Args:
          clock: tells the time in seconds.
        """
        self._clock = clock
        self._last: tuple[float, ReplayStatus] | None = None

    def update(self, status: ReplayStatus) -> BlockedFractions | None:
        """Takes a look.

        Args:
          status: of replay, as it is now.

        Returns:
          The fractions since the last look; None at the first one, or if the server was started anew.
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
