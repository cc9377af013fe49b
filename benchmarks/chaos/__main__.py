"""Kills, stops and cuts off the roles of a local run: `python -m benchmarks.chaos --config FILE ...`.

Prints each role's downtime and the outcome of every transition. The exit code is 0 after a good verdict,
1 after a bad one or a failed run, 2 for bad usage or configuration, and 130 or 143 after a signal.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from actorlearner.agents.configuration import load_with_sources
from actorlearner.config.checks import MULTI_WORKER
from actorlearner.config.problems import with_source
from actorlearner.config.schema import Config
from actorlearner.environments.names import environment_problems
from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, ConfigurationError, RunError
from actorlearner.process.tensorflow_setup import check_numpy
from actorlearner.records.usable_path import obstacle
from actorlearner.replay.checks import replay_problems
from benchmarks.chaos.schedule import MIN_DURATION_S


class _Parser(argparse.ArgumentParser):
    """Raises a ConfigurationError instead of printing the usage."""

    def error(self, message: str) -> NoReturn:
        raise ConfigurationError([f"{message}; see '{self.prog} --help'"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code. Every problem is one line on standard error."""
    try:
        options = _parser().parse_args(arguments)
        check_numpy()
        config = _load(options)
        with quiet_output():  # TensorFlow prints when it is imported.
            from benchmarks.chaos.run_chaos import run_chaos
        return run_chaos(
            config, options.run_dir, Path(options.config).stem, duration=options.duration, seed=options.seed
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
    parser = _Parser(prog="python -m benchmarks.chaos", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--config", required=True, metavar="FILE", help="a YAML file, or the name of a shipped one"
    )
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="override keys",
    )
    parser.add_argument("--run_dir", metavar="DIR", help="a new run directory; default: one under runs/")
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


def _load(options: argparse.Namespace) -> Config:
    """Loads the configuration.

    Raises:
      ConfigurationError: it cannot be used, or it asks for several learners.
    """
    if options.run_dir is not None and (reason := obstacle(options.run_dir)):
        raise ConfigurationError(
            [f"--run_dir: {options.run_dir!r} cannot be used ({reason}); allowed: a directory"]
        )
    config, sources = load_with_sources(options.config, options.set, (replay_problems, environment_problems))
    if config.learn.strategy == MULTI_WORKER:
        problem = f"learn.strategy: {MULTI_WORKER} cannot work with chaos, which starts one learner; "
        allowed = "allowed: default, mirrored, mirrored:N or tpu"
        raise ConfigurationError([with_source(f"{problem}{allowed}", sources)])
    return config


def _print_error(message: str, details: Sequence[str] = ()) -> None:
    print(f"error: {' '.join(message.splitlines())}", *details, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
