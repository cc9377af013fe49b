"""The curves of a report: one SVG picture per panel, for a light and for a dark page."""

import base64
import dataclasses
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from actorlearner.inspect.plot.draw_panel import STYLE, TimeUnit, draw_panel, time_unit
from actorlearner.inspect.plot.figure import rendered
from actorlearner.inspect.plot.groups import comparisons
from actorlearner.inspect.plot.panels import Panel, info_panels, returns_panels, training_panels
from actorlearner.inspect.plot.runs import RecordedRun

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


def draw(run: RecordedRun) -> list[Picture]:
    """Draws returns, info metrics, throughput, staleness and samples per insert."""
    (comparison,) = comparisons([run])
    groups = comparison.groups
    panels = training_panels(groups)
    if run.config.evaluate.interval is not None:  # Otherwise the page reports that evaluation is off.
        panels = [*returns_panels(groups), *info_panels(groups), *panels]
    unit = time_unit(comparison)
    return [
        Picture(panel.caption, light=_address(panel, _LIGHT, unit), dark=_address(panel, _DARK, unit))
        for panel in panels
    ]


def _address(panel: Panel, theme: _Theme, unit: TimeUnit) -> str:
    with matplotlib.rc_context(theme.style()):
        figure = Figure(figsize=_SIZE, layout="constrained")
        draw_panel(figure.subplots(), panel, {"": theme.line}, unit)  # A single group differs in nothing.
        return data_url(rendered(figure, "svg"), "image/svg+xml")


def data_url(content: bytes, kind: str) -> str:
    """Returns a file's content as an address; `kind` is its media type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
