"""Draws runs and writes the pictures, with their points as a CSV file."""

import csv
import dataclasses
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError
from actorlearner.inspect.plot import PICTURES
from actorlearner.inspect.plot.curves import (
    Group,
    comparisons,
    info_metrics,
    returns_curves,
    throughput_curve,
    training_curve,
)
from actorlearner.inspect.plot.figure import COLOURS, count_colours, make_figure, rendered
from actorlearner.inspect.plot.panels import INFO_AXIS, RETURNS_AXES
from actorlearner.inspect.plot.runs import Run, read_runs
from actorlearner.inspect.plot.statistics import Curve
from actorlearner.records.disk import write_atomically
from actorlearner.records.run_directory import RunDirectory

_SECONDS = "seconds"


@dataclasses.dataclass(frozen=True)
class Point:
    """One point of one line. The fields, in this order, are the columns of the CSV file.

    Attributes:
      comparison: the title of the panels.
      group: the label of the line's colour in the legend.
      run: the run of the line; empty for a line over all runs of the group.
      quantity: `return`, `train_steps_per_s`, `env_steps_per_s`, `staleness_mean`, `staleness_max` (both in
        train steps), `samples_per_insert` (in transitions), or one of `environment.info_metrics`.
      against: the quantity of `x`: `env_steps`, `train_steps` or `seconds` of running.
      x, value: the point.
      low, high: the band; NaN without a band.
    """

    comparison: str
    group: str
    run: str
    quantity: str
    against: str
    x: float
    value: float
    low: float
    high: float


def drawable_runs(
    directories: Sequence[tuple[RunDirectory, Config]], complain: Callable[[str], None]
) -> list[Run]:
    """Reads runs for a picture; see `read_runs`.

    Raises:
      ConfigurationError: there are more groups than colours.
      RunError: nothing was recorded in any of them yet.
    """
    runs = read_runs(directories, complain)
    if not any(run.evaluations.returns or len(run.training.times) > 1 for run in runs):
        raise RunError("there is nothing to draw: no evaluation, and fewer than two reports of a learner")
    groups = count_colours(runs)
    if groups > len(COLOURS):
        raise ConfigurationError(
            [f"RUN_DIR: {groups} configurations cannot be told apart; allowed: {len(COLOURS)} in one picture"]
        )
    return runs


def drawn_points(runs: Sequence[Run]) -> Iterator[Point]:
    """Yields every point of the picture of these runs (see `make_figure`), line by line."""
    for comparison in comparisons(runs):
        for group in comparison.groups:
            for run, quantity, against, curve in _lines(group):
                columns = (curve.x, curve.middle, curve.low, curve.high)
                for numbers in zip(*(column.tolist() for column in columns), strict=True):
                    yield Point(comparison.title, group.label, run, quantity, against, *numbers)


def _lines(group: Group) -> Iterator[tuple[str, str, str, Curve]]:
    """Yields the run, the quantity, the x axis and the curve of each line."""
    for axis in RETURNS_AXES:
        for line in returns_curves(group, axis):
            yield line.run, "return", _SECONDS if axis == "times" else axis, line.curve
    for metric in info_metrics([group]):
        for line in returns_curves(group, INFO_AXIS, metric):
            yield line.run, metric, INFO_AXIS, line.curve
    over_runs = [
        *(
            (f"{counter}_per_s", _SECONDS, throughput_curve(group, counter))
            for counter in ("train_steps", "env_steps")
        ),
        *(
            (quantity, "train_steps", training_curve(group, quantity))
            for quantity in ("staleness_mean", "staleness_max", "samples_per_insert")
        ),
    ]
    for quantity, against, curve in over_runs:
        if curve is not None:
            yield "", quantity, against, curve


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


def write_table(points: Iterable[Point], path: Path) -> None:
    """Writes points atomically as CSV; unknown numbers are empty.

    Raises:
      RunError: the file cannot be written.
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
    write_table(drawn_points(runs), table)
    for path in [*pictures, table]:
        print(f"written: {os.path.relpath(path) if path.is_relative_to(Path.cwd()) else path}")
    return EXIT_FINISHED
