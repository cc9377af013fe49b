"""The picture of one or several runs: a block of six panels, or more, for each environment."""

import io
import itertools
import math
import textwrap
from collections.abc import Callable, Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from actorlearner.inspect.plot.curves import Comparison, Group, comparisons, evaluated_runs, info_metrics
from actorlearner.inspect.plot.panels import (
    INFO_AXIS,
    RETURN,
    RETURNS_AXES,
    STYLE,
    draw_returns,
    draw_samples_per_insert,
    draw_staleness,
    draw_throughput,
    time_unit,
)
from actorlearner.inspect.plot.runs import Run
from actorlearner.inspect.plot.statistics import CONFIDENCE, MIN_BAND_SAMPLES

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colour-blind-safe palette (https://jfly.uni-koeln.de/color/), without the pale yellow."""

_COLUMNS = 3
_WIDTH, _HEIGHT = 10.0, 6.2
"""The size of a block of two rows without its legend, in inches.

A README shows its width in about 850 pixels, with text of 11 pixels.
"""

_LINE_HEIGHT = 0.19
_DOTS_PER_INCH = 160

_LEGEND_LINE = 110
_SHORT_LABEL = 45


def count_colours(runs: Sequence[Run]) -> int:
    """Returns the number of colours in a picture of these runs; at most len(COLOURS) can be drawn."""
    return len(_colours(comparisons(runs)))


def make_figure(runs: Sequence[Run]) -> Figure:
    """Draws, for each environment, returns on top, and throughput, staleness and samples per insert below.

    Each metric of `environment.info_metrics` has a panel below them.

    Args:
      runs: at least one; `count_colours` is at most len(COLOURS).

    Returns:
      A figure without a window, outside Matplotlib's global state. It is laid out when it is saved.
    """
    drawn = comparisons(runs)
    colours = _colours(drawn)
    heights = [
        _HEIGHT * (1 + _info_rows(comparison) / 2) + _LINE_HEIGHT * _legend_lines(comparison)
        for comparison in drawn
    ]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
        blocks = np.ravel(np.array(figure.subfigures(len(drawn), 1, height_ratios=heights)))
        for block, comparison in zip(blocks, drawn, strict=True):
            _draw(block, comparison, colours)
    return figure


def _colours(drawn: Sequence[Comparison]) -> dict[str, str]:
    """Returns the colour of each difference, the same in all blocks."""
    differences = dict.fromkeys(group.difference for comparison in drawn for group in comparison.groups)
    return dict(zip(differences, itertools.cycle(COLOURS), strict=False))


def _draw(block: SubFigure, comparison: Comparison, colours: dict[str, str]) -> None:
    block.suptitle(comparison.title, fontsize=11, fontweight="bold")
    panels = block.subplots(2 + _info_rows(comparison), _COLUMNS)
    unit = time_unit(comparison)
    for panel, axis in zip(panels[0], RETURNS_AXES, strict=True):
        if panel is not panels[0][0]:
            panel.sharey(panels[0][0])
        draw_returns(panel, axis, comparison, colours, unit)
    panels[0][0].set_ylabel(RETURN)
    draw_throughput(panels[1][0], comparison, colours, unit)
    draw_staleness(panels[1][1], comparison, colours)
    draw_samples_per_insert(panels[1][2], comparison, colours)
    metrics = info_metrics(comparison.groups)
    for panel, metric in itertools.zip_longest(np.ravel(panels[2:]), metrics):
        if metric is None:
            panel.set_axis_off()
            continue
        draw_returns(panel, INFO_AXIS, comparison, colours, unit, metric)
        panel.set_ylabel(f"{metric} (greedy policy)")
    _name_groups(block, comparison, colours)


def _info_rows(comparison: Comparison) -> int:
    """Returns the rows of the metrics of `environment.info_metrics`, below the other panels."""
    return math.ceil(len(info_metrics(comparison.groups)) / _COLUMNS)


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
    """Returns the approximate number of text lines of the legend."""
    labels = _legend_labels(comparison)
    return math.ceil(sum(label.count("\n") + 1 for label in labels) / _legend_columns(labels))


def _explanation(groups: Sequence[Group]) -> str:
    """Returns the explanation of the lines and bands of returns."""
    band = f"{CONFIDENCE:.0%} bootstrap band".replace("%", " %")
    what: list[tuple[str, Callable[[int], bool]]] = [
        (f"interquartile mean over runs with its {band}", lambda count: count >= MIN_BAND_SAMPLES),
        ("a line for each run", lambda count: 1 < count < MIN_BAND_SAMPLES),
        (f"the mean of one run's episodes with its {band}", lambda count: count == 1),
    ]
    texts = [text for text, holds in what if any(holds(evaluated_runs(group)) for group in groups)]
    return f"returns: {', or '.join(texts)}" if texts else ""


def rendered(figure: Figure, kind: str) -> bytes:
    """Returns the figure as `kind`, png or svg; equal figures give equal bytes."""
    content = io.BytesIO()
    # Without the date and random ids, so that equal runs give equal files.
    with matplotlib.rc_context({"svg.hashsalt": "actorlearner"}):
        metadata = {"Date": None} if kind == "svg" else {}
        figure.savefig(content, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata)
    return content.getvalue()
