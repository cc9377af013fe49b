"""`rollout`: plays episodes with a saved policy.

Plays whole episodes and prints the reward (the undiscounted return) and the length of each, and their means
with standard deviations. The same command prints the same again; only policies that explore may draw other
actions.
"""

import argparse

from actorlearner.cli.arguments import add_policy, checked_policy
from actorlearner.cli.command import Commands, add_command
from actorlearner.cli.own_output import own_output


def add_to(commands: Commands) -> None:
    """Adds the command."""
    parser = add_command(
        commands,
        "rollout",
        _start,
        summary="play episodes with a saved policy",
        description=__doc__,
        example="runs/sac_pendulum-20261121-063535 --episodes 20",
    )
    add_policy(parser, episodes=10)


def _start(arguments: argparse.Namespace, problems: list[str]) -> int:
    source = checked_policy(arguments, problems)
    with own_output() as out:  # TensorFlow prints when it is imported.
        from actorlearner.acting.rollout_command import run_rollout

        return run_rollout(source, arguments.episodes, arguments.seed, out)
