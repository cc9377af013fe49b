"""Draws runs and writes the pictures, with their points as a CSV file."""

import csv
import io
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError
from actorlearner.inspect.plot import PICTURES
from actorlearner.inspect.plot.figure import make_figure, rendered
from actorlearner.inspect.plot.groups import comparisons
from actorlearner.inspect.plot.panels import info_panels, returns_panels, training_panels
from actorlearner.inspect.plot.runs import RecordedRun, read_runs
from actorlearner.records.disk import write_atomically
from actorlearner.records.run_directory import RunDirectory

_COLUMNS = ("comparison", "group", "run", "quantity", "against", "x", "value", "low", "high")
"""The columns of the CSV file: five name a line, and four have the numbers of one of its points."""


def run_plot(directories: Sequence[tuple[RunDirectory, Config]], out: Path | None) -> int:
    """Draws runs and prints the written files; prints a line on standard error for what cannot be drawn.

    Args:
      directories: run directories with their configurations, at least one.
      out: the picture; None for one of each kind in the run directory, or in the working directory for
        several runs. The drawn points are in a CSV file of the same name.

    Returns:
      The exit code.

    Raises:
      ConfigurationError: there are more groups than colours.
      RunError: nothing was recorded in any of them yet, or a file cannot be written.
    """
    runs = drawable_runs(directories, lambda line: print(line, file=sys.stderr))
    figure = make_figure(runs)
    folder = directories[0][0].path if len(directories) == 1 else Path()
    pictures = [folder / f"plot{kind}" for kind in PICTURES] if out is None else [out]
    table = pictures[0].with_suffix(".csv")
    for path in pictures:
        write(figure, path)
    write_table(runs, table)
    for path in [*pictures, table]:
        print(f"written: {os.path.relpath(path) if path.is_relative_to(Path.cwd()) else path}")
    return EXIT_FINISHED


def drawable_runs(
    directories: Sequence[tuple[RunDirectory, Config]], complain: Callable[[str], None]
) -> list[RecordedRun]:
    """Reads runs for a picture; see `read_runs`.

    Raises:
      RunError: nothing was recorded in any of them yet.
    """
    runs = read_runs(directories, complain)
    if not any(run.evaluations.returns or len(run.training.seconds) > 1 for run in runs):
        raise RunError("there is nothing to draw: no evaluation, and fewer than two reports of a learner")
    return runs


def write(figure: Figure, path: Path) -> None:
    """Writes a picture atomically, of the kind of the suffix of `path`; creates its directory.

    Raises:
      ConfigurationError: `path` has no suffix of a picture.
      RunError: the file cannot be written.
    """
    if path.suffix.lower() not in PICTURES:
        allowed = f"a file that ends in {' or '.join(PICTURES)}"
        raise ConfigurationError([f"path: '{path}' cannot be used; allowed: {allowed}"])
    _write(path, rendered(figure, path.suffix.lower().removeprefix(".")))


def write_table(runs: Sequence[RecordedRun], path: Path) -> None:
    """Writes every point of the picture of these runs atomically as CSV; unknown numbers are empty.

    Raises:
      RunError: the file cannot be written.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_COLUMNS)
    for comparison in comparisons(runs):
        groups = comparison.groups
        panels = [*returns_panels(groups), *info_panels(groups), *training_panels(groups)]
        for group, panel in itertools.product(groups, panels):
            for line in (line for line in panel.lines if line.group is group):
                texts = (comparison.title, group.label, line.run, line.quantity, panel.against)
                curve = line.curve
                for point in np.column_stack([curve.x, curve.middle, curve.low, curve.high]).tolist():
                    table.writerow([*texts, *("" if value != value else value for value in point)])
    _write(path, text.getvalue().encode())


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error
