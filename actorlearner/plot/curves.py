"""What is drawn of a group of runs: returns, throughput, staleness and samples per insert."""

from collections.abc import Callable
from typing import Any

import numpy as np

from actorlearner.plot.groups import Group
from actorlearner.plot.runs import Evaluations, Numbers, Run
from actorlearner.plot.statistics import (
    Curve,
    interquartile_mean_curve,
    mean_curve,
    piecewise_curve,
    rate_curve,
)


def returns_curve(group: Group, axis: str) -> Curve | None:
    """Returns of the greedy policy.

    Args:
      group: several of its runs give the interquartile mean of their average returns, one alone the mean of
        its episodes' returns.
      axis: `env_steps`, `train_steps` or `times` of Evaluations.

    Returns:
      None while no run was evaluated, or where evaluations of several have no range in common.
    """
    evaluated = [run.evaluations for run in group.runs if run.evaluations.returns]
    series = [known for known in (_known(evaluations, axis) for evaluations in evaluated) if len(known[0])]
    if len(series) == 1:
        return mean_curve(*series[0])
    if not series:
        return None
    means = [np.array([returns.mean() for returns in samples]) for _, samples in series]
    return interquartile_mean_curve([x for x, _ in series], means)


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
