"""The picture of one or several runs: a block of six panels, or more, for each environment."""

import io
import itertools
import math
import textwrap
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from actorlearner.errors import ConfigurationError
from actorlearner.inspect.plot.draw_panel import STYLE, draw_panel, time_unit
from actorlearner.inspect.plot.groups import Comparison, RunGroup, comparisons
from actorlearner.inspect.plot.panels import info_metrics, info_panels, returns_panels, training_panels
from actorlearner.inspect.plot.runs import RecordedRun
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


def make_figure(runs: Sequence[RecordedRun]) -> Figure:
    """Draws, for each environment, returns on top, and throughput, staleness and samples per insert below.

    Each metric of `environment.info_metrics` has a panel below them.

    Args:
      runs: at least one.

    Returns:
      A figure without a window, outside Matplotlib's global state. It is laid out when it is saved.

    Raises:
      ConfigurationError: there are more groups than colours.
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
    if len(differences) > len(COLOURS):
        found = f"{len(differences)} configurations cannot be told apart"
        raise ConfigurationError([f"RUN_DIR: {found}; allowed: {len(COLOURS)} in one picture"])
    return dict(zip(differences, COLOURS, strict=False))


def _draw(block: SubFigure, comparison: Comparison, colours: dict[str, str]) -> None:
    block.suptitle(comparison.title, fontsize=11, fontweight="bold")
    axes = block.subplots(2 + _info_rows(comparison), _COLUMNS)
    for other in axes[0][1:]:
        other.sharey(axes[0][0])
    groups = comparison.groups
    panels = [*returns_panels(groups), *training_panels(groups), *info_panels(groups)]
    unit = time_unit(comparison)
    for each, panel in itertools.zip_longest(np.ravel(axes), panels):
        if panel is None:
            each.set_axis_off()
        else:
            draw_panel(each, panel, colours, unit)
    for other in axes[0][1:]:
        other.set_ylabel("")
    for each, metric in zip(np.ravel(axes[2:]), info_metrics(groups), strict=False):
        each.set_ylabel(f"{metric} (greedy policy)")
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


def _explanation(groups: Sequence[RunGroup]) -> str:
    """Returns the explanation of the lines and bands of returns."""
    counts = [sum(bool(run.evaluations.returns) for run in group.runs) for group in groups]
    band = f"{CONFIDENCE:.0%} bootstrap band".replace("%", " %")
    texts = {
        f"interquartile mean over runs with its {band}": any(n >= MIN_BAND_SAMPLES for n in counts),
        "a line for each run": any(1 < n < MIN_BAND_SAMPLES for n in counts),
        f"the mean of one run's episodes, with its {band} if they are five or more": 1 in counts,
    }
    shown = [text for text, holds in texts.items() if holds]
    return f"returns: {', or '.join(shown)}" if shown else ""


def rendered(figure: Figure, kind: str) -> bytes:
    """Returns the figure as `kind`, png or svg; equal figures give equal bytes."""
    content = io.BytesIO()
    # Without the date and random ids, so that equal runs give equal files.
    with matplotlib.rc_context({"svg.hashsalt": "actorlearner"}):
        metadata = {"Date": None} if kind == "svg" else {}
        figure.savefig(content, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata)
    return content.getvalue()
