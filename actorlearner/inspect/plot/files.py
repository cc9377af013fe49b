"""Figures as files: PNG for READMEs and slides, SVG for web pages, and their points as CSV."""

import csv
import dataclasses
import io
from collections.abc import Iterable
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from actorlearner.errors import RunError
from actorlearner.inspect.plot.points import Point
from actorlearner.records.seal import write_atomically

_DOTS_PER_INCH = 160


def rendered(figure: Figure, kind: str) -> bytes:
    """A picture of the figure as `kind`, png or svg; the same for the same figure."""
    content = io.BytesIO()
    # Neither the time of day nor random ids, so that equal runs give equal files.
    with matplotlib.rc_context({"svg.hashsalt": "actorlearner"}):
        metadata = {"Date": None} if kind == "svg" else {}
        figure.savefig(content, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata)
    return content.getvalue()


def write(figure: Figure, path: Path) -> None:
    """Writes a picture of the kind that the suffix of `path` names, whole or not at all; makes its folder.

    Raises:
      RunError: it cannot be written.
    """
    _write(path, rendered(figure, path.suffix.lower().removeprefix(".")))


def write_table(points: Iterable[Point], path: Path) -> None:
    """Writes points as CSV, whole or not at all; numbers that are not known are empty.

    Raises:
      RunError: it cannot be written.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(field.name for field in dataclasses.fields(Point))
    for point in points:
        table.writerow("" if value != value else value for value in dataclasses.astuple(point))
    _write(path, text.getvalue().encode())


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error
