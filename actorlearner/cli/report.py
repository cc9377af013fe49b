"""`report`: makes a page of a run.

Writes one HTML file that holds everything and opens anywhere, without a network: returns, rates and staleness
as curves, the bottleneck, faults and restarts, the configuration, versions, and a video of the best policy,
which is filmed first if there is none. The run may still be running. If its roles were started one by one,
each with a run directory of its own, name all of these.
"""

import argparse

from actorlearner.cli.arguments import add_run_dirs, checked_out, checked_run_dirs
from actorlearner.cli.command import Commands, add_command
from actorlearner.errors import ConfigurationError


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "report",
        _start,
        summary="make a page of a run: curves, rates, incidents, configuration, and the best policy at work",
        description=__doc__,
        example="runs/sac_minitaur-20261121-063535",
    )
    add_run_dirs(parser, "the directory of a run, or those of its roles where each has one")
    parser.add_argument(
        "--out", metavar="FILE", help="the page; ends in .html; default: report.html in the first RUN_DIR"
    )


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    runs = checked_run_dirs(arguments.run_dirs, problems)
    out = checked_out(arguments.out, problems, ".html")
    if problems:
        raise ConfigurationError(problems)
    from actorlearner.inspect.report.write_report import run_report

    return run_report(runs, out)
