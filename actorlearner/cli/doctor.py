"""`doctor`: checks whether this machine can train.

Checks the platform, the installed versions, GPUs, network, environment, memory, disk and a round trip through
replay, one line each: ok, warn, or FAIL with what to do. Exit code 1 if any fails.
"""

import argparse

from actorlearner.cli.command import Commands, add_command
from actorlearner.cli.experiment import add_config, load_experiment, naming_sources
from actorlearner.records.run_directory import NEW_RUNS


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "doctor",
        _start,
        summary="check whether this machine can train",
        description=__doc__,
        example="--config sac_minitaur --run_dir /data/runs/minitaur",
    )
    add_config(parser, "sac_pendulum", required=False)
    text = f"the run directory, whose disk and saved replay are checked; default: a new one under {NEW_RUNS}/"
    parser.add_argument("--run_dir", metavar="DIR", help=text)


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    experiment = load_experiment(arguments, problems, needs_numpy=False)
    from actorlearner.inspect.doctor.run_checks import run_doctor

    with naming_sources(experiment):
        return run_doctor(experiment.config, experiment.run_dir)
