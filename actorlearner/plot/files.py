"""Figures as files: PNG for READMEs and slides, SVG for web pages."""

import io
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from actorlearner.errors import RunError
from actorlearner.files.seal import write_atomically

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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, rendered(figure, path.suffix.lower().removeprefix(".")))
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error
