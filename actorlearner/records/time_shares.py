"""Measures the share of time that each phase of a loop takes."""

import time
from collections.abc import Callable


class TimeShares:
    """Attributes the time between calls of `spent` to phases of a loop; a call takes less than 1 µs."""

    def __init__(self, *parts: str, clock: Callable[[], float] = time.perf_counter) -> None:
        """Starts measuring.

        Args:
          parts: names of the phases.
          clock: returns the time in seconds.
        """
        self._clock = clock
        self._seconds = dict.fromkeys(parts, 0.0)
        self._last = self._begun = clock()

    def spent(self, part: str | None = None) -> None:
        """Attributes the time since the last call to `part`, or to no phase."""
        now = self._clock()
        if part is not None:
            self._seconds[part] += now - self._last
        self._last = now

    def take(self) -> dict[str, float]:
        """Returns each phase's share of the time since the last `take`, and starts again."""
        now = self._clock()
        elapsed_s = max(now - self._begun, 1e-9)
        fractions = {part: seconds / elapsed_s for part, seconds in self._seconds.items()}
        self._seconds = dict.fromkeys(self._seconds, 0.0)
        self._last = self._begun = now
        return fractions
