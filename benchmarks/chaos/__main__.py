"""`python -m benchmarks.chaos`: kills, stops and cuts off the roles of a local run, and counts the losses.

Runs local mode with numbered transitions while its roles are killed, stopped and cut off from the replay
server. Prints each role's downtime and the outcome of every transition; fails if one was lost or duplicated
without a reason.
"""

import argparse
import pathlib
import re
import sys
from collections.abc import Sequence

from actorlearner.agents.configuration import load_with_sources
from actorlearner.environments.names import environment_problems
from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import EXIT_FAILED, EXIT_USAGE, ConfigurationError, RunError
from actorlearner.replay.checks import replay_problems
from actorlearner.replay.least_memory import least_memory_problems
from benchmarks.chaos.schedule import LEAST_DURATION_S


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: as `actorlearner local`, and 1 if the verdict is bad."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("--config", metavar="FILE", required=True, help="a YAML file, or a shipped one")
    parser.add_argument("--set", metavar="KEY=VALUE", nargs="+", action="extend", default=[])
    parser.add_argument("--run_dir", metavar="DIR", help="a new directory; default: one under runs/")
    text = f"seconds during which roles are harmed, at least {LEAST_DURATION_S}"
    parser.add_argument("--duration", metavar="S", type=_seconds, required=True, help=text)
    parser.add_argument(
        "--seed", metavar="N", type=int, required=True, help="decides which role is harmed when"
    )
    arguments = parser.parse_args(argv)
    try:
        config, sources = load_with_sources(
            arguments.config, arguments.set, (replay_problems, environment_problems)
        )
        if problems := least_memory_problems(config, sources):
            raise ConfigurationError(problems)
        with quiet_output():  # TensorFlow, which reads replay's checkpoints, prints when it is imported.
            from benchmarks.chaos.run_chaos import run_chaos

        name = pathlib.Path(arguments.config).stem
        return run_chaos(config, arguments.run_dir, name, duration=arguments.duration, seed=arguments.seed)
    except ConfigurationError as error:
        print(*(f"error: {line}" for line in error.problems), sep="\n", file=sys.stderr)
        return EXIT_USAGE
    except RunError as error:
        print(f"error: {error}", *error.details, sep="\n", file=sys.stderr)
        return EXIT_FAILED


def _seconds(text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text) or int(text) < LEAST_DURATION_S:
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be used; allowed: an integer from {LEAST_DURATION_S}"
        )
    return int(text)


if __name__ == "__main__":
    raise SystemExit(main())
