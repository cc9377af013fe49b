"""The command that plays episodes with a saved policy."""

from actorlearner.acting.own_output import own_output
from actorlearner.cli.command import Command, Options
from actorlearner.cli.saved_policy import ARGUMENTS, SEED, episodes, played_policy


def _rollout(options: Options, problems: list[str]) -> int:
    source = played_policy(options, problems)
    with own_output() as out:  # TensorFlow prints when it is imported.
        from actorlearner.acting.rollout import run_rollout

        return run_rollout(source, options["episodes"], options["seed"], out)


ROLLOUT = Command(
    "play episodes with a saved policy",
    "Plays whole episodes and prints the reward (the undiscounted return) and the length of each, and "
    "their means with standard deviations. The same command prints the same again; only policies that "
    "explore may draw other actions.",
    "runs/sac_pendulum-20261121-063535 --episodes 20",
    _rollout,
    {"episodes": episodes(10), "seed": SEED},
    ARGUMENTS,
)
