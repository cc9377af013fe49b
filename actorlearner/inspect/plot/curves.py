"""Groups of runs that are drawn in one color, and the curves of each group."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from actorlearner.config.problems import show
from actorlearner.config.resolved import values_by_key
from actorlearner.inspect.plot.runs import Evaluations, Numbers, Run
from actorlearner.inspect.plot.statistics import (
    MIN_BAND_SAMPLES,
    Curve,
    interquartile_mean_curve,
    mean_curve,
    piecewise_curve,
    rate_curve,
)

_FEW_KEYS = 3
_SEED = "seed"
_AGENT = "agent."


@dataclasses.dataclass(frozen=True)
class Group:
    """Runs whose configurations differ in nothing but their seed.

    Attributes:
      difference: the configuration values that differ from the other groups of its environment, as in
        `replay.layout: packed`; empty for a single group.
      runs: at least one.
    """

    difference: str
    runs: tuple[Run, ...]

    @property
    def label(self) -> str:
        """Returns the difference and the number of seeds, as in `replay.layout: packed (3 seeds)`."""
        seeds = {run.config.seed for run in self.runs}
        if len(self.runs) == 1:
            which = f"seed {self.runs[0].config.seed}"
        elif len(seeds) == len(self.runs):
            which = f"{len(seeds)} seeds"
        else:
            which = f"{len(self.runs)} runs of {len(seeds)} seed{'s' * (len(seeds) > 1)}"
        return f"{self.difference} ({which})" if self.difference else which


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The groups of one environment; their returns are comparable.

    Attributes:
      title: the environment, and the algorithm if it is the same in all groups.
      groups: at least one, in the order in which their first runs were given.
    """

    title: str
    groups: tuple[Group, ...]


def comparisons(runs: Sequence[Run]) -> list[Comparison]:
    """Groups runs by configuration, and the groups by environment, in the order of `runs`."""
    environments: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        environment = run.config.environment
        environments.setdefault((environment.suite, environment.name), []).append(run)
    return [_comparison(of_environment) for of_environment in environments.values()]


def _comparison(runs: Sequence[Run]) -> Comparison:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_values(run), sort_keys=True), []).append(run)
    differences = _differences([_values(of_group[0]) for of_group in groups.values()])
    environment = runs[0].config.environment
    agents = {run.config.agent.name for run in runs}
    algorithm = f"{runs[0].config.agent.name} on " if len(agents) == 1 else ""
    return Comparison(
        title=f"{algorithm}{environment.name or environment.suite}",
        groups=tuple(
            Group(difference, tuple(of_group))
            for difference, of_group in zip(differences, groups.values(), strict=True)
        ),
    )


def _values(run: Run) -> dict[str, Any]:
    """Returns all values but the seed, without empty mappings."""
    values = values_by_key(run.config)
    return {key: value for key, value in values.items() if key != _SEED and value != {}}


def _differences(groups: Sequence[dict[str, Any]]) -> list[str]:
    """Returns each group's values of the differing keys: a few, if these distinguish the groups."""
    every = dict.fromkeys(key for values in groups for key in values)
    differing = [key for key in every if len({_exact(values, key) for values in groups}) > 1]
    # Another algorithm always has other keys.
    shared = [key for key in differing if not key.startswith(_AGENT) or all(key in v for v in groups)]
    ordered = shared + [key for key in differing if key not in shared]
    count = next(
        count
        for count in range(min(_FEW_KEYS, len(shared)), len(ordered) + 1)
        if len({tuple(_exact(values, key) for key in ordered[:count]) for values in groups}) == len(groups)
    )
    left = len(shared) - count
    more = f" and {left} more key{'s' * (left > 1)}" if left > 0 else ""
    return [", ".join(f"{key}: {_shown(values, key)}" for key in ordered[:count]) + more for values in groups]


def _exact(values: dict[str, Any], key: str) -> str | None:
    """Returns a value as JSON, because `_shown` cuts long ones; None without the key."""
    return json.dumps(values[key], sort_keys=True) if key in values else None


def _shown(values: dict[str, Any], key: str) -> str:
    if key not in values:
        return "absent"
    value = values[key]
    if isinstance(value, str):
        return value
    return f"{value:,}" if type(value) is int else show(value)


@dataclasses.dataclass(frozen=True)
class ReturnsCurve:
    """A curve of returns.

    Attributes:
      run: the name of its run; empty for the interquartile mean over the runs of a group.
      curve: the points. A single run has the band over its episodes; one of several runs has no band.
    """

    run: str
    curve: Curve


def returns_curves(group: Group, axis: str, metric: str = "") -> list[ReturnsCurve]:
    """Returns the lines of the greedy policy's returns, or of a metric of its episodes.

    Args:
      group: MIN_BAND_SAMPLES or more of its runs give the interquartile mean of their average returns; fewer
        give a curve each, the mean of their episodes' returns.
      axis: `env_steps`, `train_steps` or `times` of Evaluations.
      metric: one of `environment.info_metrics`; empty for the returns.

    Returns:
      No curve before the first evaluation, or if five runs or more have no common range.
    """
    known = [(run.name, *_known(run.evaluations, axis, metric)) for run in group.runs]
    evaluated = [(name, x, samples) for name, x, samples in known if len(x)]
    if len(evaluated) < MIN_BAND_SAMPLES:
        lines = [ReturnsCurve(name, mean_curve(x, samples)) for name, x, samples in evaluated]
        return lines if len(lines) == 1 else [_bare(line) for line in lines]
    means = [np.array([returns.mean() for returns in samples]) for _, _, samples in evaluated]
    curve = interquartile_mean_curve([x for _, x, _ in evaluated], means)
    return [] if curve is None else [ReturnsCurve("", curve)]


def info_metrics(groups: Sequence[Group]) -> list[str]:
    """Returns the metrics of `environment.info_metrics` of all runs, each once."""
    runs = [run for group in groups for run in group.runs]
    return list(dict.fromkeys(metric for run in runs for metric in run.config.environment.info_metrics))


def evaluated_runs(group: Group) -> int:
    """Returns how many runs of the group have an evaluation."""
    return sum(bool(run.evaluations.returns) for run in group.runs)


def _bare(line: ReturnsCurve) -> ReturnsCurve:
    """Returns the curve without its band: several bands of one colour look like a band over runs."""
    none = np.full(len(line.curve.x), np.nan)
    return dataclasses.replace(line, curve=dataclasses.replace(line.curve, low=none, high=none))


def throughput_curve(group: Group, counter: str) -> Curve | None:
    """Returns the steps per second against seconds of running, as the mean over runs.

    Args:
      group: runs with fewer than two reports are ignored.
      counter: `train_steps` or `env_steps` of Training.
    """
    trained = [run.training for run in group.runs if len(run.training.times) > 1]
    return rate_curve([t.times for t in trained], [getattr(t, counter) for t in trained])


def training_curve(group: Group, quantity: str) -> Curve | None:
    """Returns a quantity against train steps, as the mean over runs; maxima are averaged as maxima.

    Args:
      group: runs without the quantity are ignored.
      quantity: `samples_per_insert`, `staleness_mean` or `staleness_max` of Training.
    """
    series = [known for known in (_known_training(run, quantity) for run in group.runs) if len(known[0]) > 1]
    reduce: Callable[..., Any] = np.mean
    if quantity == "staleness_max":
        reduce = np.max
    return piecewise_curve([x for x, _ in series], [y for _, y in series], reduce)


def target_samples_per_insert(group: Group) -> float | None:
    """Returns the rate limiter's target, in transitions; None without a limit."""
    config = group.runs[0].config
    updates = config.replay.updates_per_env_step
    return None if updates is None else updates * config.learn.batch_size


def _known(evaluations: Evaluations, axis: str, metric: str) -> tuple[Numbers, list[Numbers]]:
    """Returns the x and the returns, or the metric, of the evaluations that have both, sorted by x."""
    x: Numbers = getattr(evaluations, axis)
    samples = evaluations.info.get(metric, ()) if metric else evaluations.returns
    order = [i for i in np.argsort(x, kind="stable") if np.isfinite(x[i]) and samples and len(samples[i])]
    return x[order], [samples[i] for i in order]


def _known_training(run: Run, quantity: str) -> tuple[Numbers, Numbers]:
    x, y = run.training.train_steps, getattr(run.training, quantity)
    known = np.isfinite(x) & np.isfinite(y)
    return x[known], y[known]
