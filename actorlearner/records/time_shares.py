"""Measures the share of time that each phase of a loop takes."""

import time
from collections.abc import Callable


class TimeShares:
    """Attributes the time between calls of `spent` to phases of a loop; a call takes less than 1 µs."""

    def __init__(self, *phases: str, clock: Callable[[], float] = time.perf_counter) -> None:
        """Starts measuring.

        Args:
          *phases: their names.
          clock: returns the time in seconds.
        """
        self._clock = clock
        self._seconds = dict.fromkeys(phases, 0.0)
        self._last = self._begun = clock()

    def spent(self, phase: str | None = None) -> None:
        """Attributes the time since the last call to `phase`, or to no phase."""
        now = self._clock()
        if phase is not None:
            self._seconds[phase] += now - self._last
        self._last = now

    def take(self) -> dict[str, float]:
        """Returns each phase's share of the time since the last `take`, and starts again."""
        now = self._clock()
        elapsed_s = max(now - self._begun, 1e-9)
        fractions = {phase: seconds / elapsed_s for phase, seconds in self._seconds.items()}
        self._seconds = dict.fromkeys(self._seconds, 0.0)
        self._last = self._begun = now
        return fractions
