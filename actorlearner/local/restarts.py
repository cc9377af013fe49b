"""Limits and delays the restarts of a role that keeps dying."""

import collections

_MAX_RESTARTS, _WINDOW_S = 10, 600.0
_MIN_DELAY_S, _MAX_DELAY_S = 1.0, 30.0


class Restarts:
    """The restarts of one role: at most ten in ten minutes, after delays that double while it keeps dying."""

    def __init__(self) -> None:
        """Starts without restarts."""
        self._times: collections.deque[float] = collections.deque()

    def delay_s(self, now: float) -> float | None:
        """Records a death, and returns the seconds until the restart; None after too many deaths.

        Args:
          now: the time in seconds, of a clock that never goes back.
        """
        while self._times and now - self._times[0] > _WINDOW_S:
            self._times.popleft()
        if len(self._times) >= _MAX_RESTARTS:
            return None
        recent = sum(1 for time in self._times if now - time < 2 * _MAX_DELAY_S)
        self._times.append(now)
        return float(min(_MAX_DELAY_S, _MIN_DELAY_S * 2**recent))

    def __str__(self) -> str:
        """The number of recent restarts."""
        return f"restart {len(self._times)} of at most {_MAX_RESTARTS} in {_WINDOW_S / 60:.0f} minutes"
