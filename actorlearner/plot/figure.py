"""The picture of one or several runs: a block of six panels for each environment."""

import itertools
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from actorlearner.plot.axis import TimeUnit, name_x, separate_thousands, time_unit
from actorlearner.plot.curves import (
    asked_samples_per_insert,
    returns_curve,
    throughput_curve,
    training_curve,
)
from actorlearner.plot.groups import Comparison, Group, comparisons
from actorlearner.plot.runs import Run
from actorlearner.plot.statistics import CONFIDENCE, Curve

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""For all eyes: Okabe and Ito's (https://jfly.uni-koeln.de/color/), without yellow, for that is pale."""

_WIDTH, _HEIGHT = 10.0, 6.2
"""Of a block without its legend, in inches. In a README it has about 850 pixels, and text of 9 points 11."""

_LINE_HEIGHT = 0.19

_STYLE: Any = {
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
Style = Literal["-", "--", ":"]
_SOLID: Style = "-"
_DASHED: Style = "--"
_DOTTED: Style = ":"
_LEGEND_LINE = 110
_SHORT_LABEL = 45
_FEW_POINTS = 20
_NOTHING = "nothing recorded"
_ROOM = 1.08  # Above what begins at zero.


def most_groups(runs: Sequence[Run]) -> int:
    """How many colours a picture of these runs needs; `make_figure` has as many as there are in COLOURS."""
    return len(_colours(comparisons(runs)))


def make_figure(runs: Sequence[Run]) -> Figure:
    """Draws, for each environment, returns on top, and throughput, staleness and samples per insert below.

    Args:
      runs: at least one; `most_groups` of them are no more than COLOURS.

    Returns:
      A figure that no window and no global state of Matplotlib knows of. It is laid out when it is saved.
    """
    drawn = comparisons(runs)
    colours = _colours(drawn)
    heights = [_HEIGHT + _LINE_HEIGHT * _legend_lines(comparison) for comparison in drawn]
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
        blocks = np.ravel(np.array(figure.subfigures(len(drawn), 1, height_ratios=heights)))
        for block, comparison in zip(blocks, drawn, strict=True):
            _draw(block, comparison, colours)
    return figure


def _colours(drawn: Sequence[Comparison]) -> dict[str, str]:
    """The colour of each difference, the same in all blocks."""
    differences = dict.fromkeys(group.difference for comparison in drawn for group in comparison.groups)
    return dict(zip(differences, itertools.cycle(COLOURS), strict=False))


def _draw(block: SubFigure, comparison: Comparison, colours: dict[str, str]) -> None:
    block.suptitle(comparison.title, fontsize=11, fontweight="bold")
    panels = block.subplots(2, 3)
    unit = time_unit(comparison)
    _draw_returns(panels[0], comparison, colours, unit)
    _draw_throughput(panels[1][0], comparison, colours, unit)
    _draw_staleness(panels[1][1], comparison, colours)
    _draw_samples_per_insert(panels[1][2], comparison, colours)
    _name_groups(block, comparison, colours)


def _draw_returns(
    panels: Sequence[Axes], comparison: Comparison, colours: dict[str, str], unit: TimeUnit
) -> None:
    for panel, axis in zip(panels, ("env_steps", "train_steps", "times"), strict=True):
        if panel is not panels[0]:
            panel.sharey(panels[0])
        divisor = unit.seconds if axis == "times" else 1.0
        for group in comparison.groups:
            _add(panel, returns_curve(group, axis), colours[group.difference], divisor=divisor)
        _finish(panel, unit if axis == "times" else axis.replace("_", " "))
    panels[0].set_ylabel("return of the greedy policy")


def _draw_throughput(panel: Axes, comparison: Comparison, colours: dict[str, str], unit: TimeUnit) -> None:
    styles: dict[str, Style] = {"train steps": _SOLID, "env steps": _DASHED}
    for group in comparison.groups:
        for counter, style in styles.items():
            curve = throughput_curve(group, counter.replace(" ", "_"))
            _add(panel, curve, colours[group.difference], style, unit.seconds)
    for line in panel.lines:  # Both are the same at one update an env step, and have to be seen.
        line.set(
            **({"linewidth": 3.5, "alpha": 0.4} if line.get_linestyle() == _SOLID else {"linewidth": 1.2})
        )
    _finish(panel, unit, styles, from_zero=True)
    panel.set_ylabel("throughput (steps/s)")


def _draw_staleness(panel: Axes, comparison: Comparison, colours: dict[str, str]) -> None:
    styles: dict[str, Style] = {"mean": _SOLID, "max": _DASHED}
    for group in comparison.groups:
        for name, style in styles.items():
            _add(panel, training_curve(group, f"staleness_{name}"), colours[group.difference], style)
    _finish(panel, "train steps", styles, from_zero=True)
    panel.set_ylabel("staleness (train steps)")


def _draw_samples_per_insert(panel: Axes, comparison: Comparison, colours: dict[str, str]) -> None:
    for group in comparison.groups:
        _add(panel, training_curve(group, "samples_per_insert"), colours[group.difference])
    asked = {asked_samples_per_insert(group) for group in comparison.groups} - {None}
    for group in comparison.groups:
        target = asked_samples_per_insert(group)
        if target is not None and panel.lines:
            panel.axhline(
                target, color=colours[group.difference] if len(asked) > 1 else "grey", linestyle=_DOTTED
            )
    styles: dict[str, Style] = {"since the start": _SOLID, "asked for": _DOTTED} if asked else {}
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
) -> None:
    """Names the axis, explains the styles of lines above the panel, and says so if nothing is drawn."""
    if not panel.lines:
        panel.text(0.5, 0.5, _NOTHING, transform=panel.transAxes, ha="center", va="center", color="grey")
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
        handles = [Line2D([], [], color="dimgrey", linestyle=style) for style in styles.values()]
        where: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
        panel.legend(handles, list(styles), ncols=len(styles), frameon=False, **where)


def _name_groups(block: SubFigure, comparison: Comparison, colours: dict[str, str]) -> None:
    labels = _legend_labels(comparison)
    handles = [Line2D([], [], color=colours[group.difference], linewidth=3) for group in comparison.groups]
    legend = block.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=_legend_columns(labels),
        frameon=False,
        title=_explanation(comparison.groups),
        title_fontsize=8,
    )
    legend.get_title().set_color("dimgrey")


def _legend_labels(comparison: Comparison) -> list[str]:
    return [textwrap.fill(group.label, _LEGEND_LINE) for group in comparison.groups]


def _legend_columns(labels: Sequence[str]) -> int:
    return min(len(labels), 3) if max(map(len, labels)) <= _SHORT_LABEL else 1


def _legend_lines(comparison: Comparison) -> int:
    """About how many lines of text the legend has."""
    labels = _legend_labels(comparison)
    return math.ceil(sum(label.count("\n") + 1 for label in labels) / _legend_columns(labels))


def _explanation(groups: Sequence[Group]) -> str:
    """What the lines and the bands of returns are."""
    what: list[tuple[str, Callable[[int], bool]]] = [
        ("interquartile mean over seeds", lambda count: count > 1),
        ("mean over the episodes of one seed", lambda count: count == 1),
    ]
    said = [text for text, holds in what if any(holds(len(group.runs)) for group in groups)]
    return f"returns: {', or '.join(said)}; band: {CONFIDENCE:.0%} bootstrap confidence".replace("%", " %")
