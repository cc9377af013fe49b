"""Axes with units and readable numbers."""

import dataclasses
import itertools

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, MaxNLocator

from actorlearner.inspect.plot.groups import Comparison

_MILLION = 1_000_000
_MOST_X_TICKS = 4
_MOST_Y_TICKS = 6
_MINUS = "\N{MINUS SIGN}"


@dataclasses.dataclass(frozen=True)
class TimeUnit:
    """What time is shown in.

    Attributes:
      name: its abbreviation.
      seconds: how long it is.
    """

    name: str
    seconds: float


_UNITS = (TimeUnit("h", 3_600.0), TimeUnit("min", 60.0), TimeUnit("s", 1.0))


def time_unit(comparison: Comparison) -> TimeUnit:
    """The largest unit of which the longest run took two at least."""
    runs = [run for group in comparison.groups for run in group.runs]
    longest = max(itertools.chain([0.0], *((*run.evaluations.times, *run.training.times) for run in runs)))
    return next((unit for unit in _UNITS if longest >= 2 * unit.seconds), _UNITS[-1])


def name_x(panel: Axes, x: str | TimeUnit) -> None:
    """Labels the x axis: by what is counted, in millions where there are many, or by the unit of time."""
    if isinstance(x, TimeUnit):
        panel.set_xlabel(f"wall-clock time while running ({x.name})")
    else:
        millions = panel.get_xlim()[1] >= _MILLION
        panel.set_xlabel(f"{x} (millions)" if millions else x)


def separate_thousands(panel: Axes) -> None:
    """Few ticks, so that their numbers do not touch, with commas between thousands."""
    _format(panel.xaxis, _MILLION if panel.get_xlabel().endswith("(millions)") else 1, _MOST_X_TICKS)
    _format(panel.yaxis, 1, _MOST_Y_TICKS)


def _format(axis: Axis, divisor: int, most_ticks: int) -> None:
    axis.set_major_locator(MaxNLocator(most_ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, position: number(value / divisor)))


def number(value: float) -> str:
    """A tick's number: commas between thousands, no digits that say nothing."""
    if float(value).is_integer():
        return f"{value:,.0f}".replace("-", _MINUS if value else "")
    return f"{value:,.6g}".replace("-", _MINUS)
