"""What is drawn of a group of runs: returns, throughput, staleness and samples per insert."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from actorlearner.inspect.plot.groups import Group
from actorlearner.inspect.plot.runs import Evaluations, Numbers, Run
from actorlearner.inspect.plot.statistics import (
    FEWEST_FOR_A_BAND,
    Curve,
    interquartile_mean_curve,
    mean_curve,
    piecewise_curve,
    rate_curve,
)


@dataclasses.dataclass(frozen=True)
class ReturnsCurve:
    """A line of returns.

    Attributes:
      run: the name of the run that it shows; empty for the interquartile mean over a group's runs.
      curve: its points. Those of one run alone have the band of its episodes; those of a run beside others
        have none.
    """

    run: str
    curve: Curve


def returns_curves(group: Group, axis: str) -> list[ReturnsCurve]:
    """Returns the lines of the greedy policy's returns.

    Args:
      group: FEWEST_FOR_A_BAND or more of its runs give the interquartile mean of their average returns; fewer
        give a line each, the mean of their episodes' returns.
      axis: `env_steps`, `train_steps` or `times` of Evaluations.

    Returns:
      Nothing while no run was evaluated, or where evaluations of five or more have no range in common.
    """
    known = [(run.name, *_known(run.evaluations, axis)) for run in group.runs]
    evaluated = [(name, x, samples) for name, x, samples in known if len(x)]
    if len(evaluated) < FEWEST_FOR_A_BAND:
        lines = [ReturnsCurve(name, mean_curve(x, samples)) for name, x, samples in evaluated]
        return lines if len(lines) == 1 else [_bare(line) for line in lines]
    means = [np.array([returns.mean() for returns in samples]) for _, _, samples in evaluated]
    curve = interquartile_mean_curve([x for _, x, _ in evaluated], means)
    return [] if curve is None else [ReturnsCurve("", curve)]


def evaluated_runs(group: Group) -> int:
    """Returns how many runs of the group have an evaluation."""
    return sum(bool(run.evaluations.returns) for run in group.runs)


def _bare(line: ReturnsCurve) -> ReturnsCurve:
    """Returns the line without its band: several bands in one colour would read as one over runs."""
    none = np.full(len(line.curve.x), np.nan)
    return dataclasses.replace(line, curve=dataclasses.replace(line.curve, low=none, high=none))


def throughput_curve(group: Group, counter: str) -> Curve | None:
    """Steps a second against seconds of running: the mean over runs.

    Args:
      group: of it, the runs that train already.
      counter: `train_steps` or `env_steps` of Training.
    """
    trained = [run.training for run in group.runs if len(run.training.times) > 1]
    return rate_curve([t.times for t in trained], [getattr(t, counter) for t in trained])


def training_curve(group: Group, quantity: str) -> Curve | None:
    """A quantity against train steps: the mean over runs, of a maximum the mean of their greatest.

    Args:
      group: of it, the runs that know the quantity.
      quantity: `samples_per_insert`, `staleness_mean` or `staleness_max` of Training.
    """
    series = [known for known in (_known_training(run, quantity) for run in group.runs) if len(known[0]) > 1]
    reduce: Callable[..., Any] = np.mean
    if quantity == "staleness_max":
        reduce = np.max
    return piecewise_curve([x for x, _ in series], [y for _, y in series], reduce)


def asked_samples_per_insert(group: Group) -> float | None:
    """What the rate limiter keeps, in transitions; None if it keeps nothing."""
    config = group.runs[0].config
    asked = config.replay.updates_per_env_step
    return None if asked is None else asked * config.learn.batch_size


def _known(evaluations: Evaluations, axis: str) -> tuple[Numbers, list[Numbers]]:
    """The evaluations whose place on the axis is known, in its order."""
    x: Numbers = getattr(evaluations, axis)
    order = [i for i in np.argsort(x, kind="stable") if np.isfinite(x[i])]
    return x[order], [evaluations.returns[i] for i in order]


def _known_training(run: Run, quantity: str) -> tuple[Numbers, Numbers]:
    x, y = run.training.train_steps, getattr(run.training, quantity)
    known = np.isfinite(x) & np.isfinite(y)
    return x[known], y[known]
