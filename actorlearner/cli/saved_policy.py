"""What commands have in common that play a saved policy."""

from actorlearner.acting.policy_source import ALLOWED, PolicySource, find_policy
from actorlearner.cli import flags
from actorlearner.cli.command import Flag, Options
from actorlearner.errors import ConfigurationError
from actorlearner.process.imports import check_numpy

POLICY = "policy"
"""The argument's name."""

ARGUMENTS = {
    POLICY: Flag(
        ALLOWED,
        "a run directory (its policies/best, else its policies/greedy_policy), the directory of one policy, "
        "also a copy elsewhere, or a checkpoint such as RUN_DIR/checkpoints/learner/ckpt-10000",
    )
}

SEED = Flag("S", "seeds the environments; default: 0", flags.index, default="0")


def episodes(default: int) -> Flag:
    """The flag for how many are played."""
    return Flag("N", f"how many are played; default: {default}", flags.count, default=str(default))


def played_policy(options: Options, problems: list[str]) -> PolicySource:
    """Finds the policy that was named.

    Raises:
      ConfigurationError: with the problems found so far, and those of the policy.
    """
    check_numpy()
    try:
        source = find_policy(options[POLICY])
    except ConfigurationError as error:
        raise ConfigurationError([*problems, *error.problems]) from error
    if problems:
        raise ConfigurationError(problems)
    return source
