"""The curves of a report: one SVG picture per panel, for a light and for a dark page."""

import base64
import dataclasses
from collections.abc import Callable
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from actorlearner.inspect.plot.curves import comparisons, info_metrics
from actorlearner.inspect.plot.figure import rendered
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

_SIZE = (4.2, 2.8)
"""In inches; a phone shows it at 90 %, with text of 10 pixels."""


@dataclasses.dataclass(frozen=True)
class _Theme:
    """The colours of a page: the line, the text, and the axes with their grid."""

    line: str
    text: str
    edge: str

    def style(self) -> Any:
        """Returns Matplotlib's settings; some of their keys have no type."""
        around = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
        edges = ("axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
        return {
            **STYLE,
            **dict.fromkeys(around, self.text),
            **dict.fromkeys(edges, self.edge),
            **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
        }


_LIGHT = _Theme(line="#0072B2", text="#1f2328", edge="#8b949e")
_DARK = _Theme(line="#56B4E9", text="#e6edf3", edge="#7d8590")


@dataclasses.dataclass(frozen=True)
class Picture:
    """A panel.

    Attributes:
      caption: the title of the panel.
      light, dark: data URLs of the SVG.
    """

    caption: str
    light: str
    dark: str


def draw(run: Run) -> list[Picture]:
    """Draws returns against each of RETURNS_AXES, info metrics, throughput, staleness, samples per insert."""
    (comparison,) = comparisons([run])
    unit = time_unit(comparison)
    difference = comparison.groups[0].difference
    panels: list[tuple[str, Callable[[Axes, dict[str, str]], None]]] = []
    axes = dict(zip(RETURNS_AXES, ("env steps", "train steps", "time"), strict=True))
    if run.config.evaluate.interval is None:
        axes = {}  # The page reports that evaluation is off.
    for axis, against in axes.items():

        def returns(panel: Axes, colours: dict[str, str], axis: str = axis) -> None:
            draw_returns(panel, axis, comparison, colours, unit)
            panel.set_ylabel(RETURN)

        panels.append((f"Return against {against}", returns))
    for metric in info_metrics(comparison.groups) if axes else ():

        def info(panel: Axes, colours: dict[str, str], metric: str = metric) -> None:
            draw_returns(panel, INFO_AXIS, comparison, colours, unit, metric)
            panel.set_ylabel(metric)

        panels.append((f"{metric} of the greedy policy", info))
    panels.append(("Throughput", lambda panel, colours: draw_throughput(panel, comparison, colours, unit)))
    panels.append(("Staleness", lambda panel, colours: draw_staleness(panel, comparison, colours)))
    panels.append(
        ("Samples per insert", lambda panel, colours: draw_samples_per_insert(panel, comparison, colours))
    )
    return [
        Picture(caption, *(_panel(draw_on, theme, difference) for theme in (_LIGHT, _DARK)))
        for caption, draw_on in panels
    ]


def _panel(draw_on: Callable[[Axes, dict[str, str]], None], theme: _Theme, difference: str) -> str:
    with matplotlib.rc_context(theme.style()):
        figure = Figure(figsize=_SIZE, layout="constrained")
        draw_on(figure.subplots(), {difference: theme.line})
        return data_url(rendered(figure, "svg"), "image/svg+xml")


def data_url(content: bytes, kind: str) -> str:
    """Returns a file's content as an address; `kind` is its media type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
