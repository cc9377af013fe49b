"""Draws a panel on the axes of a Matplotlib figure."""

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from actorlearner.inspect.plot.groups import Comparison
from actorlearner.inspect.plot.panels import DOTTED, Line, Panel, Style

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

_FEW_POINTS = 20
_ROOM = 1.08  # Above the highest value of an axis from zero.
_MILLION = 1_000_000
_MAX_X_TICKS = 4
_MAX_Y_TICKS = 6
_MINUS = "\N{MINUS SIGN}"


class TimeUnit(NamedTuple):
    """The unit of a time axis: its abbreviation and its length in seconds."""

    name: str
    seconds: float


_UNITS = (TimeUnit("h", 3_600.0), TimeUnit("min", 60.0), TimeUnit("s", 1.0))


def time_unit(comparison: Comparison) -> TimeUnit:
    """Returns the largest unit of which the longest run took at least two."""
    runs = [run for group in comparison.groups for run in group.runs]
    ends = [moments[-1:] for run in runs for moments in (run.evaluations.seconds, run.training.seconds)]
    longest = max(itertools.chain([0.0], *ends))
    return next((unit for unit in _UNITS if longest >= 2 * unit.seconds), _UNITS[-1])


def draw_panel(axes: Axes, panel: Panel, colours: Mapping[str, str], unit: TimeUnit) -> None:
    """Draws a panel, with the labels of its axes and the legend of its line styles.

    Args:
      axes: where to draw; without any lines.
      panel: the panel.
      colours: the colour of each group, by its difference.
      unit: the unit of time.
    """
    divisor = unit.seconds if panel.against == "seconds" else 1.0
    for line in panel.lines:
        if len(line.curve.x):
            _draw_line(axes, line, colours[line.group.difference], divisor)
    if axes.lines:
        several = len({target for _, target in panel.targets}) > 1
        for group, target in panel.targets:
            axes.axhline(target, color=colours[group.difference] if several else "grey", linestyle=DOTTED)
        _limit(axes, from_zero=panel.from_zero)
        if panel.styles:
            _name_styles(axes, panel.styles)
    else:
        axes.text(0.5, 0.5, panel.nothing, transform=axes.transAxes, ha="center", va="center", color="grey")
        axes.grid(visible=False)
        axes.tick_params(bottom=False, labelbottom=False, left=False, labelleft=False)
    _name_x(axes, panel.against, unit)
    axes.set_ylabel(panel.y_label)
    _format(axes.yaxis, 1, _MAX_Y_TICKS)


def _name_x(axes: Axes, against: str, unit: TimeUnit) -> None:
    """Labels the x axis, in millions for large numbers of steps."""
    label, divisor = against.replace("_", " "), 1
    if against == "seconds":
        label = f"wall-clock time while running ({unit.name})"
    elif axes.get_xlim()[1] >= _MILLION:
        label, divisor = f"{label} (millions)", _MILLION
    axes.set_xlabel(label)
    _format(axes.xaxis, divisor, _MAX_X_TICKS)


def _draw_line(axes: Axes, line: Line, colour: str, divisor: float) -> None:
    curve = line.curve
    x = curve.x / divisor
    marker = "o" if len(x) <= _FEW_POINTS else None
    axes.plot(x, curve.middle, color=colour, marker=marker, markersize=2.5, **line.look)
    if len(x) == 1:
        axes.vlines(x, curve.low, curve.high, color=colour, alpha=0.4, linewidth=4)
    elif np.isfinite(curve.low).any():
        axes.fill_between(x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)


def _limit(axes: Axes, *, from_zero: bool) -> None:
    """Starts the x axis at zero, and the y axis if `from_zero`."""
    if from_zero:
        highest = max(float(np.max(line.get_ydata())) for line in axes.lines)
        axes.set_ylim(0, _ROOM * highest or 1)
    furthest = max(float(np.max(line.get_xdata())) for line in axes.lines)
    axes.set_xlim(0, None if furthest > 0 else 1)


def _name_styles(axes: Axes, styles: Mapping[str, Style]) -> None:
    handles = [Line2D([], [], color="grey", linestyle=style) for style in styles.values()]
    where: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
    axes.legend(handles, list(styles), ncols=len(styles), frameon=False, **where)


def _format(axis: Axis, divisor: int, max_ticks: int) -> None:
    """Sets few ticks, so that their numbers do not touch."""
    axis.set_major_locator(MaxNLocator(max_ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, position: tick_text(value / divisor)))


def tick_text(value: float) -> str:
    """Formats the number of a tick: commas between thousands, no trailing zeros."""
    if float(value).is_integer():
        return f"{value:,.0f}".replace("-", _MINUS if value else "")
    return f"{value:,.6g}".replace("-", _MINUS)
