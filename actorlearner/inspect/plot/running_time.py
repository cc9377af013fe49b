"""How long a run had been running at a moment, where it was stopped and resumed in between."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

PAUSE_S = 60.0
"""A run of which nothing was recorded for so many seconds was not running meanwhile."""


class RunningTime:
    """Turns moments into seconds of running."""

    def __init__(self, moments: Sequence[float], *, steady: bool = True) -> None:
        """Learns when the run was running.

        Args:
          moments: Unix seconds of signs of life, in any order; the first is the beginning of the run.
          steady: whether these would come all the time. If not, no time between them is taken for a pause.
        """
        self._moments = np.unique(np.asarray(moments, np.float64))
        passed = np.diff(self._moments)
        if steady:
            passed[passed > PAUSE_S] = 0.0
        self._seconds = np.concatenate([np.zeros(min(1, len(self._moments))), np.cumsum(passed)])

    def at(self, moments: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The seconds of running before `moments`, Unix seconds [n], as float64 [n]."""
        if not len(self._moments):
            return np.zeros(len(moments))
        return np.interp(moments, self._moments, self._seconds)
