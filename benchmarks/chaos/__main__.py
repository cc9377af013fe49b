"""Kills, stops and cuts off the roles of a local run: `python -m benchmarks.chaos --config FILE ...`.

Prints each role's downtime and the outcome of every transition. The exit code is 0 after a good verdict,
1 after a bad one or a failed run, 2 for bad usage or configuration, and 130 or 143 after a signal.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence

from actorlearner.cli.command import Parser
from actorlearner.cli.experiment import add_experiment, load_experiment, one_learner_problems
from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, ConfigurationError, RunError
from benchmarks.chaos.schedule import MIN_DURATION_S


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code. Every problem is one line on standard error."""
    try:
        options = _parser().parse_args(arguments)
        experiment = load_experiment(options, [], one_learner_problems)
        with quiet_output():  # TensorFlow prints when it is imported.
            from benchmarks.chaos.run_chaos import run_chaos
        return run_chaos(
            experiment.config,
            experiment.run_dir,
            experiment.name,
            duration=options.duration,
            seed=options.seed,
        )
    except ConfigurationError as error:
        for problem in error.problems:
            _print_error(problem)
        return EXIT_USAGE
    except RunError as error:
        _print_error(str(error), error.details)
        return EXIT_FAILED
    except OSError as error:
        _print_error(str(error))
        return EXIT_FAILED
    except KeyboardInterrupt:  # Before the run handles signals itself.
        return EXIT_INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m benchmarks.chaos", description=__doc__, allow_abbrev=False)
    add_experiment(parser)
    parser.add_argument(
        "--duration",
        required=True,
        type=_integer_from(MIN_DURATION_S),
        metavar="S",
        help=f"seconds during which roles are harmed, at least {MIN_DURATION_S}",
    )
    parser.add_argument(
        "--seed",
        required=True,
        type=_integer_from(0),
        metavar="N",
        help="decides which role is harmed when",
    )
    return parser


def _integer_from(minimum: int) -> Callable[[str], int]:
    """Returns a parser of integers that are not below a minimum."""

    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or int(text) < minimum:
            raise argparse.ArgumentTypeError(f"{text!r} cannot be used; allowed: an integer from {minimum}")
        return int(text)

    return parse


def _print_error(message: str, details: Sequence[str] = ()) -> None:
    print(f"error: {' '.join(message.splitlines())}", *details, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
