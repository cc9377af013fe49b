"""Numbers of the environment's `info` as metrics of an episode: the key `environment.info_metrics`."""

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from actorlearner.records.notify import warn

_KINDS = ("sum", "mean")
_NUMBERS = "biuf"  # NumPy's kinds: bool, signed and unsigned integers, floats.


def info_keys(metrics: Sequence[str]) -> tuple[str, ...]:
    """Returns the keys of `info` that metrics need: energy for energy, sum:energy and mean:energy."""
    return tuple(dict.fromkeys(_split(metric)[1] for metric in metrics))


def named_numbers(info: Any, keys: Collection[str]) -> dict[str, float]:
    """Returns the finite numbers of an `info` by their keys; other values and missing keys are left out."""
    if not isinstance(info, Mapping):
        return {}
    numbers = {key: _number(info[key]) for key in keys if key in info}
    return {key: number for key, number in numbers.items() if number is not None}


class EpisodeInfo:
    """Computes the metrics of an environment's episodes from the infos of its env steps."""

    def __init__(self, metrics: Sequence[str]) -> None:
        """Starts without env steps.

        Args:
          metrics: KEY for the value at the last env step of an episode, sum:KEY or mean:KEY over its env
            steps.
        """
        self._metrics = [(metric, *_split(metric)) for metric in metrics]
        self.clear()

    def clear(self) -> None:
        """Forgets the env steps of an episode that does not count."""
        self._last: Mapping[str, float] = {}
        self._totals: dict[str, tuple[int, float]] = {}  # How many numbers each key had, and their sum.

    def add(self, info: Mapping[str, float]) -> None:
        """Adds the named numbers of the next env step."""
        self._last = info
        for key, value in info.items():
            count, total = self._totals.get(key, (0, 0.0))
            self._totals[key] = (count + 1, total + value)

    def take(self) -> dict[str, float]:
        """Returns the metrics of the episode that ended, and starts the next one.

        Metrics without a number are left out. The first time that happens, a warning is logged.
        """
        found: dict[str, float] = {}
        for metric, kind, key in self._metrics:
            count, total = self._totals.get(key, (0, 0.0))
            if key not in (self._totals if kind else self._last):
                _warn_missing(metric, key, "any" if kind else "the last")
            else:
                found[metric] = {"sum": total, "mean": total / count, "": self._last.get(key, 0.0)}[kind]
        self.clear()
        return found


def info_of_episodes(
    metrics: Sequence[str], infos: Sequence[Mapping[str, float]]
) -> dict[str, list[float | None]]:
    """Returns each metric's values, one per episode; None where the episode has none."""
    return {metric: [info.get(metric) for info in infos] for metric in metrics}


def average_info(info: Mapping[str, Sequence[float | None]]) -> dict[str, float | None]:
    """Returns each metric's mean over the episodes that have it; None if none has."""
    known = {metric: [v for v in values if v is not None] for metric, values in info.items()}
    return {metric: float(np.mean(values)) if values else None for metric, values in known.items()}


def _split(metric: str) -> tuple[str, str]:
    """Returns the kind of a metric, sum, mean or "" for the last value, and its key."""
    kind, _, key = metric.partition(":")
    return (kind, key) if kind in _KINDS and key else ("", metric)


def _number(value: Any) -> float | None:
    try:
        array = np.asarray(value)
    except ValueError:  # Lists of different lengths.
        return None
    if array.size != 1 or array.dtype.kind not in _NUMBERS:
        return None
    number = float(array.reshape(()))
    return number if np.isfinite(number) else None


@functools.cache  # One line for each metric.
def _warn_missing(metric: str, key: str, which: str) -> None:
    warn(
        f"environment.info_metrics: {metric!r} has no value for an episode: the info of {which} env step has "
        f"no number {key!r}"
    )
