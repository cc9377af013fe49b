"""Averages over seeds or episodes with confidence bands, and averages of frequent reports.

The interquartile mean over runs with a percentile bootstrap is what Agarwal et al. recommend in "Deep
Reinforcement Learning at the Edge of the Statistical Precipice" (2021), https://arxiv.org/abs/2108.13264.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.stats

Numbers = npt.NDArray[np.float64]

CONFIDENCE = 0.95
"""The confidence level of every band."""

MIN_BAND_SAMPLES = 5
"""The minimum number of samples for a band: a bootstrap of two or three is meaningless."""

MAX_POINTS = 200
"""The maximum number of points of a curve; longer curves are thinned evenly."""

_MAX_BINS = 60
_RESAMPLES = 2_000
_SEED = 0
_CUT = 0.25  # The fraction cut at either end, which leaves the interquartile range.


@dataclasses.dataclass(frozen=True)
class Curve:
    """A line and a band around it. All arrays are float64 [points].

    Attributes:
      x: not decreasing.
      middle: the line.
      low, high: the band; NaN without a band.
    """

    x: Numbers
    middle: Numbers
    low: Numbers
    high: Numbers


def _without_band(x: Numbers, middle: Numbers) -> Curve:
    return Curve(x, middle, np.full(len(x), np.nan), np.full(len(x), np.nan))


_NO_CURVE = _without_band(np.empty(0), np.empty(0))


def interquartile_mean_curve(xs: Sequence[Numbers], ys: Sequence[Numbers]) -> Curve:
    """Returns the interquartile mean over runs, with its confidence.

    Resamples whole runs. This is the stratified bootstrap with a single stratum, the environment.

    Args:
      xs: of each run, float64 [points], in any order; at least MIN_BAND_SAMPLES runs.
      ys: the values there. Runs with points elsewhere are interpolated linearly, see `common_points`.

    Returns:
      A curve without points if the runs have no common range.
    """
    x = common_points(xs)
    if not len(x):
        return _NO_CURVE
    values = np.stack([_interpolate(x, own_x, y) for own_x, y in zip(xs, ys, strict=True)])
    middle = functools.partial(scipy.stats.trim_mean, proportiontocut=_CUT)
    low, high = _confidence(values.T, middle)
    return Curve(x, middle(values, axis=0), low, high)


def mean_curve(x: Numbers, samples: Sequence[Numbers], *, band: bool = True) -> Curve:
    """Returns the mean of the samples at each x, with a band where there are MIN_BAND_SAMPLES or more.

    Args:
      x: float64 [points], not decreasing.
      samples: at each point, float64 [samples], at least one.
      band: whether there is a band.
    """
    chosen = _spread(len(x))
    means = np.array([samples[i].mean() for i in chosen])
    if not band:
        return _without_band(x[chosen], means)
    bands = [_confidence(samples[i][np.newaxis], np.mean) for i in chosen]
    low, high = (np.array([each[side][0] for each in bands]) for side in (0, 1))
    return Curve(x[chosen], means, low, high)


def common_points(xs: Sequence[Numbers]) -> Numbers:
    """Returns the sorted x of all runs inside their common range; at most MAX_POINTS.

    Args:
      xs: of each run, float64 [points], at least one.
    """
    first, last = max(x.min() for x in xs), min(x.max() for x in xs)
    every = np.unique(np.concatenate(list(xs)))
    inside = every[(first <= every) & (every <= last)]
    return inside[_spread(len(inside))]


def rate_curve(times: Sequence[Numbers], counts: Sequence[Numbers]) -> Curve:
    """Returns the mean over runs of a counter's rate, in equal intervals of their common time.

    Args:
      times: of each run, seconds, float64 [reports], not decreasing.
      counts: the counter at these times. A decrease counts as no progress.

    Returns:
      A curve without points if there is no common time.
    """
    edges = _edges(times)
    if edges is None:
        return _NO_CURVE
    rates = []
    for time, count in zip(times, counts, strict=True):
        counted = np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(count), 0.0))])
        rates.append(np.diff(np.interp(edges, time, counted)) / np.diff(edges))
    return _without_band(_middles(edges), np.mean(rates, axis=0))


def piecewise_curve(xs: Sequence[Numbers], ys: Sequence[Numbers], statistic: str = "mean") -> Curve:
    """Returns the mean over runs of the values in equal intervals of their common range.

    Args:
      xs: of each run, float64 [reports], in any order.
      ys: the values there.
      statistic: "mean" or "max" of a run's values in an interval.

    Returns:
      A curve without points if there is no common range; intervals without values are omitted.
    """
    edges = _edges(xs)
    if edges is None:
        return _NO_CURVE
    binned = [
        scipy.stats.binned_statistic(x, y, statistic, bins=edges).statistic
        for x, y in zip(xs, ys, strict=True)
    ]
    known = np.isfinite(binned).any(axis=0)
    return _without_band(_middles(edges)[known], np.nanmean(np.array(binned)[:, known], axis=0))


def _confidence(values: Numbers, statistic: Callable[..., Any]) -> tuple[Numbers, Numbers]:
    """Returns the percentile bootstrap of a statistic along the last axis of float64 [points, samples]."""
    points, samples = values.shape
    if samples < MIN_BAND_SAMPLES:
        return np.full(points, np.nan), np.full(points, np.nan)
    interval = scipy.stats.bootstrap(
        (values,),
        statistic,
        axis=-1,
        vectorized=True,
        n_resamples=_RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return np.asarray(interval.low), np.asarray(interval.high)


def _interpolate(x: Numbers, own_x: Numbers, y: Numbers) -> Numbers:
    order = np.argsort(own_x, kind="stable")
    return np.interp(x, own_x[order], y[order])


def _spread(count: int) -> npt.NDArray[np.intp]:
    """Returns the indices of at most MAX_POINTS of `count` points, with the first and the last."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, MAX_POINTS)).round().astype(np.intp))


def _edges(xs: Sequence[Numbers]) -> Numbers | None:
    """Returns the edges of equal intervals of the common range, with about two reports per run or more."""
    if not xs or any(len(x) < 2 for x in xs):
        return None
    first, last = max(x.min() for x in xs), min(x.max() for x in xs)
    if last <= first:
        return None
    inside = min(int(np.count_nonzero((first <= x) & (x <= last))) for x in xs)
    return np.linspace(first, last, max(1, min(_MAX_BINS, inside // 2)) + 1)


def _middles(edges: Numbers) -> Numbers:
    return (edges[:-1] + edges[1:]) / 2
