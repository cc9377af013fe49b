"""The panels of a picture: what each shows of the groups of one environment, before it is drawn."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from actorlearner.inspect.plot.groups import RunGroup
from actorlearner.inspect.plot.runs import Evaluations, Training
from actorlearner.inspect.plot.statistics import (
    MIN_BAND_SAMPLES,
    Curve,
    Numbers,
    interquartile_mean_curve,
    mean_curve,
    piecewise_curve,
    rate_curve,
)

Style = Literal["-", "--", ":"]
SOLID: Style = "-"
DASHED: Style = "--"
DOTTED: Style = ":"

_RETURNS = {"env_steps": "env steps", "train_steps": "train steps", "seconds": "time"}
"""The x axes of the returns, with their names in a caption."""


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a panel.

    Attributes:
      group: the group whose colour it has.
      run: the run of the line; empty for a line over all runs of the group.
      quantity: what its points are, as named in the CSV file.
      curve: its points; without any, nothing is drawn.
      look: settings of Matplotlib besides the colour.
    """

    group: RunGroup
    run: str
    quantity: str
    curve: Curve
    look: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Panel:
    """A panel, before it is drawn.

    Attributes:
      caption: its title.
      y_label: the label of the y axis.
      against: the quantity of the x axis: `env_steps`, `train_steps` or `seconds` of running.
      lines: its lines, group by group.
      styles: the names and styles of the lines in its legend; empty without a legend.
      targets: a horizontal line for each of these groups.
      from_zero: whether the y axis starts at zero.
      nothing: the text on a panel without lines.
    """

    caption: str
    y_label: str
    against: str
    lines: Sequence[Line]
    styles: Mapping[str, Style] = dataclasses.field(default_factory=dict)
    targets: Sequence[tuple[RunGroup, float]] = ()
    from_zero: bool = True
    nothing: str = "nothing recorded"


def returns_panels(groups: Sequence[RunGroup]) -> list[Panel]:
    """Returns the panels of the greedy policy's returns: against env steps, train steps and time."""
    return [
        _evaluations(groups, axis, caption=f"Return against {against}", y_label="return of the greedy policy")
        for axis, against in _RETURNS.items()
    ]


def info_panels(groups: Sequence[RunGroup]) -> list[Panel]:
    """Returns a panel for each metric of `environment.info_metrics`."""
    return [
        _evaluations(groups, "env_steps", metric, caption=f"{metric} of the greedy policy", y_label=metric)
        for metric in info_metrics(groups)
    ]


def training_panels(groups: Sequence[RunGroup]) -> list[Panel]:
    """Returns the panels of the learner's reports: throughput, staleness, samples per insert."""
    # The rates coincide at one update per env step; both must be visible.
    wide = {"linestyle": SOLID, "linewidth": 3.5, "alpha": 0.4}
    thin = {"linestyle": DASHED, "linewidth": 1.2}
    rates = {"train_steps_per_s": wide, "env_steps_per_s": thin}
    ages = {"staleness_mean": {"linestyle": SOLID}, "staleness_max": {"linestyle": DASHED}}
    targets = [(group, target) for group in groups if (target := _target_samples_per_insert(group))]
    return [
        Panel(
            "Throughput",
            "throughput (steps/s)",
            "seconds",
            _training_lines(groups, rates),
            {"train steps": SOLID, "env steps": DASHED},
        ),
        Panel(
            "Staleness",
            "staleness (train steps)",
            "train_steps",
            _training_lines(groups, ages),
            {"mean": SOLID, "max": DASHED},
        ),
        Panel(
            "Samples per insert",
            "samples per insert (transitions)",
            "train_steps",
            _training_lines(groups, {"samples_per_insert": {}}),
            {"since the start": SOLID, "target": DOTTED} if targets else {},
            targets,
        ),
    ]


def info_metrics(groups: Sequence[RunGroup]) -> list[str]:
    """Returns the metrics of `environment.info_metrics` of all runs, each once."""
    runs = [run for group in groups for run in group.runs]
    return list(dict.fromkeys(metric for run in runs for metric in run.config.environment.info_metrics))


def _evaluations(
    groups: Sequence[RunGroup], axis: str, metric: str = "", *, caption: str, y_label: str
) -> Panel:
    off = all(run.config.evaluate.interval is None for group in groups for run in group.runs)
    return Panel(
        caption,
        y_label,
        axis,
        [line for group in groups for line in _evaluation_lines(group, axis, metric)],
        from_zero=False,
        nothing="evaluation is off" if off else "nothing recorded",
    )


def _evaluation_lines(group: RunGroup, axis: str, metric: str) -> list[Line]:
    """Returns the lines of the returns, or of a metric of `environment.info_metrics` if it is not empty.

    MIN_BAND_SAMPLES or more runs with an evaluation give the interquartile mean of their average returns;
    fewer give a line each, the mean of their episodes' returns. Only a single line has a band: several bands
    of one colour look like a band over runs.
    """
    quantity = metric or "return"
    known = [(run.name, *_known(run.evaluations, axis, metric)) for run in group.runs]
    evaluated = [(name, x, samples) for name, x, samples in known if len(x)]
    if len(evaluated) < MIN_BAND_SAMPLES:
        band = len(evaluated) == 1
        return [
            Line(group, run, quantity, mean_curve(x, samples, band=band)) for run, x, samples in evaluated
        ]
    means = [np.array([returns.mean() for returns in samples]) for _, _, samples in evaluated]
    return [Line(group, "", quantity, interquartile_mean_curve([x for _, x, _ in evaluated], means))]


def _known(evaluations: Evaluations, axis: str, metric: str) -> tuple[Numbers, list[Numbers]]:
    """Returns the x and the returns, or the metric, of the evaluations that have both, sorted by x."""
    x: Numbers = getattr(evaluations, axis)
    samples = evaluations.info.get(metric, ()) if metric else evaluations.returns
    order = [i for i in np.argsort(x, kind="stable") if np.isfinite(x[i]) and samples and len(samples[i])]
    return x[order], [samples[i] for i in order]


def _training_lines(groups: Sequence[RunGroup], looks: Mapping[str, Mapping[str, Any]]) -> list[Line]:
    """Returns a line for each group and each quantity in `looks`, as the mean over runs."""
    return [
        Line(group, "", quantity, _training_curve([run.training for run in group.runs], quantity), look)
        for group in groups
        for quantity, look in looks.items()
    ]


def _training_curve(runs: Sequence[Training], quantity: str) -> Curve:
    """Returns a rate against seconds, or another quantity against train steps."""
    counter = quantity.removesuffix("_per_s")
    if counter != quantity:
        reported = [run for run in runs if len(run.seconds) > 1]
        return rate_curve([run.seconds for run in reported], [getattr(run, counter) for run in reported])
    xs, ys = [], []
    for run in runs:
        x, y = run.train_steps, getattr(run, quantity)
        known = np.isfinite(x) & np.isfinite(y)
        if np.count_nonzero(known) > 1:
            xs.append(x[known])
            ys.append(y[known])
    return piecewise_curve(xs, ys, "max" if quantity == "staleness_max" else "mean")


def _target_samples_per_insert(group: RunGroup) -> float | None:
    """Returns the rate limiter's target, in transitions; None without a limit."""
    config = group.runs[0].config
    updates = config.replay.updates_per_env_step
    return None if updates is None else updates * config.learn.batch_size
