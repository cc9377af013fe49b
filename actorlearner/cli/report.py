"""The command that makes a page of a run."""

from actorlearner.cli.command import Command, Flag, Options
from actorlearner.cli.out import given_out
from actorlearner.cli.run_dirs import given_runs
from actorlearner.errors import ConfigurationError

_ENDING = ".html"


def _report(options: Options, problems: list[str]) -> int:
    runs = given_runs(options, problems)
    out = given_out(options, problems, _ENDING)
    if problems:
        raise ConfigurationError(problems)
    from actorlearner.inspect.report.write_report import run_report

    return run_report(runs, out)


REPORT = Command(
    "make a page of a run: curves, rates, troubles, configuration, and the best policy at work",
    "Writes one HTML file that holds everything and opens anywhere, without a network: returns, rates and "
    "staleness as curves, what holds the run back, faults and restarts, the configuration, versions, and a "
    "video of the best policy, which is filmed first unless it has been. The run may be going on. Of roles "
    "that were started one by one, each with a run directory of its own, name all of these.",
    "runs/sac_minitaur-20261121-063535",
    _report,
    {
        "out": Flag(
            "FILE", "the page; ends in .html; default: report.html in the first RUN_DIR", required=False
        )
    },
    {
        "run_dirs": Flag(
            "RUN_DIR", "the directory of a run, or those of its roles where each has one", list, several=True
        )
    },
)
