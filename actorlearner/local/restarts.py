"""When a role that died is started again, and when no more."""

import collections

_MOST = 10
_WINDOW_S = 600.0
_FIRST_DELAY_S = 1.0
_MOST_DELAY_S = 30.0


class Restarts:
    """The restarts of one role: at most ten in ten minutes, after delays that double while it keeps dying."""

    def __init__(self) -> None:
        """There were none yet."""
        self._times: collections.deque[float] = collections.deque()

    def delay_s(self, now: float) -> float | None:
        """Counts a death.

        Args:
          now: the time in seconds, of any clock that is always the same.

        Returns:
          Seconds to wait before the next start; None if there is none.
        """
        while self._times and now - self._times[0] > _WINDOW_S:
            self._times.popleft()
        if len(self._times) >= _MOST:
            return None
        recent = sum(1 for time in self._times if now - time < 2 * _MOST_DELAY_S)
        self._times.append(now)
        return float(min(_MOST_DELAY_S, _FIRST_DELAY_S * 2**recent))

    def __str__(self) -> str:
        """How many there were lately."""
        return f"restart {len(self._times)} of at most {_MOST} in {_WINDOW_S / 60:.0f} minutes"
