"""What `actorlearner plot` does."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FINISHED, ConfigurationError, RunError
from actorlearner.inspect.plot import PICTURES
from actorlearner.inspect.plot.figure import COLOURS, make_figure, most_groups
from actorlearner.inspect.plot.files import write, write_table
from actorlearner.inspect.plot.points import drawn_points
from actorlearner.inspect.plot.runs import read_runs
from actorlearner.records.run_directory import RunDirectory


def run_plot(directories: Sequence[tuple[RunDirectory, Config]], out: Path | None) -> int:
    """Draws runs, and prints which files were written; what cannot be drawn is a line on standard error.

    Args:
      directories: of runs, at least one, each with what ran there.
      out: the picture; None writes one of each kind into the run directory, or here if there are several.
        A CSV file of the same name holds the points that were drawn.

    Returns:
      The exit code.

    Raises:
      ConfigurationError: there are more groups than colours.
      RunError: nothing was recorded in any of them yet, or a file cannot be written.
    """
    runs = read_runs(directories, lambda line: print(line, file=sys.stderr))
    if not any(run.evaluations.returns or len(run.training.times) > 1 for run in runs):
        raise RunError("there is nothing to draw: no evaluation, and fewer than two reports of a learner")
    groups = most_groups(runs)
    if groups > len(COLOURS):
        raise ConfigurationError(
            [f"RUN_DIR: {groups} configurations cannot be told apart; allowed: {len(COLOURS)} in one picture"]
        )
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
