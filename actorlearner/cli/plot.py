"""`plot`: draws what runs have learned, and how fast.

Draws the returns of one or several runs against env steps, train steps and time, and below how fast they
were. Runs whose configurations differ only in their seed have one colour: five or more are drawn as the
interquartile mean with a 95 % bootstrap band, fewer as a line each. Without --out, plot.png and plot.svg are
written into the run directory, or here if there are several. A CSV file of the same name has every point that
was drawn. The runs may still be running.
"""

import argparse
from pathlib import Path

from actorlearner.cli.arguments import add_run_dirs, checked_out, checked_run_dirs
from actorlearner.cli.command import Commands, add_command, parsed_by
from actorlearner.errors import ConfigurationError
from actorlearner.inspect.plot import PICTURES

_ENDINGS = " or ".join(PICTURES)


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "plot",
        _start,
        summary="draw returns, rates and staleness of runs",
        description=__doc__,
        example="runs/packed-0 runs/packed-1 runs/trajectory-0 --out layouts.png",
    )
    add_run_dirs(parser, "where a run was written, or is being written")
    parser.add_argument(
        "--out", metavar="FILE", type=parsed_by("--out", _picture), help=f"the picture; ends in {_ENDINGS}"
    )


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    runs = checked_run_dirs(arguments.run_dirs, problems)
    out = checked_out(arguments.out, problems)
    if problems:
        raise ConfigurationError(problems)
    from actorlearner.inspect.plot.write_plot import run_plot

    return run_plot(runs, out)


def _picture(text: str) -> Path:
    if Path(text).suffix.lower() not in PICTURES:
        raise ValueError(f"a file that ends in {_ENDINGS}")
    return Path(text)
