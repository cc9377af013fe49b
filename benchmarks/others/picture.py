"""The picture of a task: the returns of all contenders, with bands."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from actorlearner.inspect.plot.figure import COLOURS
from benchmarks.others.tables import Run, by_contender

_POINTS = 200
"""At which the curves of the rounds are compared."""


def picture(runs: Sequence[Run]) -> Figure:
    """Draws the returns against env steps and against minutes of training.

    A line is the median of a contender's rounds, and the band goes from the worst to the best of them. Both
    end where the first of its rounds ended.
    """
    figure = Figure(figsize=(8.5, 3.2), layout="constrained")
    by_env_steps, by_minutes = figure.subplots(1, 2, sharey=True)
    for (name, rounds), colour in zip(by_contender(runs).items(), COLOURS, strict=False):
        _draw(by_env_steps, [list(run.returns) for run in rounds], rounds, colour, name)
        minutes = [[run.minutes_at(env_steps) for env_steps in run.returns] for run in rounds]
        _draw(by_minutes, minutes, rounds, colour, name)
    by_env_steps.set_xlabel("env steps")
    by_env_steps.set_ylabel("AverageReturn")
    by_env_steps.legend()
    by_minutes.set_xlabel("minutes")
    by_minutes.set_xscale("log")  # Libraries differ by factors.
    by_minutes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    by_minutes.xaxis.set_major_formatter(FuncFormatter(lambda minutes, _: f"{minutes:g}"))
    by_minutes.xaxis.set_minor_locator(NullLocator())
    return figure


def _draw(
    axes: Axes, positions: Sequence[Sequence[float]], rounds: Sequence[Run], colour: str, name: str
) -> None:
    """`positions` has those of each round's evaluations."""
    shared = np.linspace(max(each[0] for each in positions), min(each[-1] for each in positions), _POINTS)
    curves = np.array([
        np.interp(shared, own, list(run.returns.values()))
        for own, run in zip(positions, rounds, strict=True)
    ])  # fmt: skip
    axes.plot(shared, np.median(curves, axis=0), color=colour, label=name)
    axes.fill_between(shared, curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.2, linewidth=0)
