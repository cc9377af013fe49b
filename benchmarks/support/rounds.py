"""Measuring in rounds: machines are noisy, so everything is measured in turn, several times."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Value = TypeVar("Value")


def in_turn(measurements: Mapping[str, Callable[[], Value]], rounds: int) -> dict[str, list[Value]]:
    """Takes each measurement once a round, in turn; returns the values of all rounds, by name."""
    values: dict[str, list[Value]] = {name: [] for name in measurements}
    for _ in range(rounds):
        for name, measure in measurements.items():
            values[name].append(measure())
    return values


def compared(values: Mapping[str, Sequence[float]], ours: str, beside: str) -> tuple[float, float, float]:
    """Returns the medians of `beside` and of `ours`, and the median of the rounds' ratios of ours to it.

    The ratio is taken in each round because the machine's speed changes from round to round.
    """
    ratios = [a / b for a, b in zip(values[ours], values[beside], strict=True)]
    return statistics.median(values[beside]), statistics.median(values[ours]), statistics.median(ratios)


def rate(step: Callable[[], object], seconds: float, per_step: int = 1) -> float:
    """Calls `step` for so many seconds; returns units (`per_step` in each call) a second."""
    began = time.perf_counter()
    count = 0
    while (elapsed := time.perf_counter() - began) < seconds:
        step()
        count += per_step
    return count / elapsed


def cpu_seconds(steps: Callable[[], object]) -> float:
    """Returns the CPU seconds of all threads of this process while `steps` runs."""
    began = time.process_time()
    steps()
    return time.process_time() - began
