"""`local`: trains on this machine, every role as a process of its own.

Starts a replay server, the collect actors, an eval actor and a learner on this machine, and ends when the
learner has finished and its last policy is evaluated.
"""

import argparse

from actorlearner.cli.arguments import add_output_flags, metrics_address, verbosity
from actorlearner.cli.command import Commands, add_command, offer, one_of
from actorlearner.cli.experiment import (
    add_experiment,
    load_experiment,
    naming_sources,
    one_learner_problems,
)
from actorlearner.network.private_network import HOST, NETWORKS, PRIVATE


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "local",
        _start,
        summary="train on this machine: every role as a process of its own",
        description=__doc__,
        example="--config sac_pendulum --set learn.train_steps=20000 collect.actors=2",
    )
    add_experiment(parser)
    network = parser.add_argument(
        "--network",
        metavar="|".join(NETWORKS),
        type=one_of("--network", NETWORKS),
        default=PRIVATE,
        help=f"{PRIVATE}, the default, hides the replay server from everything outside this run, where the "
        f"system allows that; {HOST} is for environments that need the network",
    )
    offer(network, lambda: NETWORKS)
    add_output_flags(parser)


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    experiment = load_experiment(arguments, problems, one_learner_problems)
    output, metrics = verbosity(arguments), metrics_address(arguments)
    from actorlearner.local.train import run_local

    with naming_sources(experiment):
        return run_local(
            experiment.config,
            experiment.run_dir,
            experiment.name,
            arguments.network,
            verbosity=output,
            metrics=metrics,
        )
