"""Measuring in rounds: machines are noisy, so everything is measured in turn, several times."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

Measurement = Callable[[], float]


def medians(
    measurements: Mapping[str, Measurement], rounds: int, details: dict[str, list[float]]
) -> dict[str, float]:
    """Takes each measurement once a round, in turn.

    Args:
      measurements: what to measure, by name.
      rounds: how often.
      details: gets all values, by name.

    Returns:
      The median of each.
    """
    for name in measurements:
        details[name] = []
    for _ in range(rounds):
        for name, measure in measurements.items():
            details[name].append(measure())
    return {name: statistics.median(details[name]) for name in measurements}


def ratio(details: Mapping[str, Sequence[float]], ours: str, beside: str) -> float:
    """Returns the median of the rounds' ratios: the machine's speed changes from round to round."""
    return statistics.median(a / b for a, b in zip(details[ours], details[beside], strict=True))


def rate(step: Callable[[], object], seconds: float, per_step: int = 1) -> float:
    """Calls `step` for so many seconds; returns units (`per_step` in each call) a second."""
    began = time.perf_counter()
    count = 0
    while (elapsed := time.perf_counter() - began) < seconds:
        step()
        count += per_step
    return count / elapsed


def cpu_seconds(steps: Callable[[], object]) -> float:
    """CPU seconds of all threads of this process while `steps` runs."""
    began = time.process_time()
    steps()
    return time.process_time() - began
