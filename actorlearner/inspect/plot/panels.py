"""The panels of a picture: each draws one quantity of the groups of one environment."""

import dataclasses
import itertools
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from actorlearner.inspect.plot.curves import (
    Comparison,
    returns_curves,
    target_samples_per_insert,
    throughput_curve,
    training_curve,
)
from actorlearner.inspect.plot.statistics import Curve

_MILLION = 1_000_000
_MAX_X_TICKS = 4
_MAX_Y_TICKS = 6
_MINUS = "\N{MINUS SIGN}"


@dataclasses.dataclass(frozen=True)
class TimeUnit:
    """The unit of a time axis.

    Attributes:
      name: its abbreviation.
      seconds: its length.
    """

    name: str
    seconds: float


_UNITS = (TimeUnit("h", 3_600.0), TimeUnit("min", 60.0), TimeUnit("s", 1.0))


def time_unit(comparison: Comparison) -> TimeUnit:
    """Returns the largest unit of which the longest run took at least two."""
    runs = [run for group in comparison.groups for run in group.runs]
    longest = max(itertools.chain([0.0], *((*run.evaluations.times, *run.training.times) for run in runs)))
    return next((unit for unit in _UNITS if longest >= 2 * unit.seconds), _UNITS[-1])


def name_x(panel: Axes, x: str | TimeUnit) -> None:
    """Labels the x axis with its quantity, in millions for large numbers, or with its unit of time."""
    if isinstance(x, TimeUnit):
        panel.set_xlabel(f"wall-clock time while running ({x.name})")
    else:
        millions = panel.get_xlim()[1] >= _MILLION
        panel.set_xlabel(f"{x} (millions)" if millions else x)


def separate_thousands(panel: Axes) -> None:
    """Sets few ticks, so that their numbers do not touch, with commas between thousands."""
    _format(panel.xaxis, _MILLION if panel.get_xlabel().endswith("(millions)") else 1, _MAX_X_TICKS)
    _format(panel.yaxis, 1, _MAX_Y_TICKS)


def _format(axis: Axis, divisor: int, max_ticks: int) -> None:
    axis.set_major_locator(MaxNLocator(max_ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, position: number(value / divisor)))


def number(value: float) -> str:
    """Formats the number of a tick: commas between thousands, no trailing zeros."""
    if float(value).is_integer():
        return f"{value:,.0f}".replace("-", _MINUS if value else "")
    return f"{value:,.6g}".replace("-", _MINUS)


RETURNS_AXES = ("env_steps", "train_steps", "times")
"""The x axes of the returns."""

INFO_AXIS = "env_steps"
"""The x axis of the metrics of `environment.info_metrics`."""

RETURN = "return of the greedy policy"

STYLE: Any = {
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.6,
    "legend.fontsize": 9,
    "text.parse_math": False,  # A dollar in a name is a dollar.
}
"""Matplotlib's settings, for making and drawing the panels."""

Colours = dict[str, str]
"""The colour of each group, by its difference."""

Style = Literal["-", "--", ":"]
_SOLID: Style = "-"
_DASHED: Style = "--"
_DOTTED: Style = ":"
_FEW_POINTS = 20
_NOTHING = "nothing recorded"
_ROOM = 1.08  # Above the highest value of an axis from zero.


def draw_returns(
    panel: Axes, axis: str, comparison: Comparison, colours: Colours, unit: TimeUnit, metric: str = ""
) -> None:
    """Draws the returns of the greedy policy, or a metric of its episodes, without a label of the y axis.

    Args:
      panel: the axes to draw on.
      axis: one of RETURNS_AXES.
      comparison: the groups to draw.
      colours: the colours of the groups.
      unit: the unit of time.
      metric: one of `environment.info_metrics`; empty for the returns.
    """
    divisor = unit.seconds if axis == "times" else 1.0
    for group in comparison.groups:
        for line in returns_curves(group, axis, metric):
            _add(panel, line.curve, colours[group.difference], divisor=divisor)
    off = all(run.config.evaluate.interval is None for group in comparison.groups for run in group.runs)
    x: str | TimeUnit = unit if axis == "times" else axis.replace("_", " ")
    _finish(panel, x, nothing="evaluation is off" if off else _NOTHING)


def draw_throughput(panel: Axes, comparison: Comparison, colours: Colours, unit: TimeUnit) -> None:
    """Draws train steps and env steps a second against time."""
    styles: dict[str, Style] = {"train steps": _SOLID, "env steps": _DASHED}
    for group in comparison.groups:
        for counter, style in styles.items():
            curve = throughput_curve(group, counter.replace(" ", "_"))
            _add(panel, curve, colours[group.difference], style, unit.seconds)
    for line in panel.lines:  # The curves coincide at one update per env step; both must be visible.
        line.set(
            **({"linewidth": 3.5, "alpha": 0.4} if line.get_linestyle() == _SOLID else {"linewidth": 1.2})
        )
    _finish(panel, unit, styles, from_zero=True)
    panel.set_ylabel("throughput (steps/s)")


def draw_staleness(panel: Axes, comparison: Comparison, colours: Colours) -> None:
    """Draws the mean and maximum age of sampled transitions, in train steps."""
    styles: dict[str, Style] = {"mean": _SOLID, "max": _DASHED}
    for group in comparison.groups:
        for name, style in styles.items():
            _add(panel, training_curve(group, f"staleness_{name}"), colours[group.difference], style)
    _finish(panel, "train steps", styles, from_zero=True)
    panel.set_ylabel("staleness (train steps)")


def draw_samples_per_insert(panel: Axes, comparison: Comparison, colours: Colours) -> None:
    """Draws the mean number of samples per transition since the start, and its target."""
    for group in comparison.groups:
        _add(panel, training_curve(group, "samples_per_insert"), colours[group.difference])
    targets = {target_samples_per_insert(group) for group in comparison.groups} - {None}
    for group in comparison.groups:
        target = target_samples_per_insert(group)
        if target is not None and panel.lines:
            panel.axhline(
                target, color=colours[group.difference] if len(targets) > 1 else "grey", linestyle=_DOTTED
            )
    styles: dict[str, Style] = {"since the start": _SOLID, "target": _DOTTED} if targets else {}
    _finish(panel, "train steps", styles, from_zero=True)
    panel.set_ylabel("samples per insert (transitions)")


def _add(panel: Axes, curve: Curve | None, colour: str, style: Style = _SOLID, divisor: float = 1.0) -> None:
    if curve is None or not len(curve.x):
        return
    x = curve.x / divisor
    marker = "o" if len(x) <= _FEW_POINTS else None
    panel.plot(x, curve.middle, color=colour, linestyle=style, marker=marker, markersize=2.5)
    if len(x) == 1:
        panel.vlines(x, curve.low, curve.high, color=colour, alpha=0.4, linewidth=4)
    elif np.isfinite(curve.low).any():
        panel.fill_between(x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)


def _finish(
    panel: Axes,
    x: str | TimeUnit,
    styles: dict[str, Style] | None = None,
    *,
    from_zero: bool = False,
    nothing: str = _NOTHING,
) -> None:
    """Labels the x axis, adds the legend of line styles, and writes `nothing` on a panel without curves."""
    if not panel.lines:
        panel.text(0.5, 0.5, nothing, transform=panel.transAxes, ha="center", va="center", color="grey")
        panel.grid(visible=False)
        panel.tick_params(bottom=False, labelbottom=False, left=False, labelleft=False)
    elif from_zero:
        highest = max(float(np.max(line.get_ydata())) for line in panel.lines)
        panel.set_ylim(0, _ROOM * highest or 1)
    if panel.lines:
        furthest = max(float(np.max(line.get_xdata())) for line in panel.lines)
        panel.set_xlim(0, None if furthest > 0 else 1)
    name_x(panel, x)
    separate_thousands(panel)
    if styles and panel.lines:
        handles = [Line2D([], [], color="grey", linestyle=style) for style in styles.values()]
        where: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
        panel.legend(handles, list(styles), ncols=len(styles), frameon=False, **where)
