"""The command that draws what runs have learned, and how fast."""

from pathlib import Path

from actorlearner.cli.command import Command, Flag, Options
from actorlearner.cli.out import given_out
from actorlearner.cli.run_dirs import RUN_DIRS, given_runs
from actorlearner.errors import ConfigurationError
from actorlearner.inspect.plot import PICTURES


def _picture(text: str) -> Path:
    """Parses the file that a picture is to be written to.

    Raises:
      ValueError: its suffix is none of PICTURES; the message says what is allowed.
    """
    if Path(text).suffix.lower() not in PICTURES:
        raise ValueError(f"a file that ends in {' or '.join(PICTURES)}")
    return Path(text)


def _plot(options: Options, problems: list[str]) -> int:
    runs = given_runs(options, problems)
    out = given_out(options, problems)
    if problems:
        raise ConfigurationError(problems)
    from actorlearner.inspect.plot.write_plot import run_plot

    return run_plot(runs, out)


PLOT = Command(
    "draw returns, rates and staleness of runs",
    "Draws the returns of one or several runs against env steps, train steps and time, and below how fast "
    "they were. Runs whose configurations differ only in their seed have one colour: five or more are drawn "
    "as the interquartile mean with a 95 % bootstrap band, fewer as a line each. Without --out, plot.png and "
    "plot.svg are written into the run directory, or here if there are several. A CSV file of the same name "
    "has every point that was drawn. The runs may be going on.",
    "runs/packed-0 runs/packed-1 runs/trajectory-0 --out layouts.png",
    _plot,
    {"out": Flag("FILE", f"the picture; ends in {' or '.join(PICTURES)}", _picture, required=False)},
    {"run_dirs": RUN_DIRS},
)
