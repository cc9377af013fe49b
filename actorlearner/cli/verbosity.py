"""The flags that say how much is to be said."""

from actorlearner.cli.command import Flag, Options
from actorlearner.errors import ConfigurationError
from actorlearner.process.verbosity import Verbosity

VERBOSITY_FLAGS = {
    "quiet": Flag("", "say only what goes wrong", required=False, switch=True),
    "verbose": Flag("", "show everything that goes to the logs as well", required=False, switch=True),
}


def take_verbosity(options: Options) -> Verbosity:
    """Takes these flags out of the options.

    Raises:
      ConfigurationError: both are given.
    """
    quiet, verbose = (options.pop(name, False) for name in VERBOSITY_FLAGS)
    if quiet and verbose:
        raise ConfigurationError(["--quiet: cannot be used with --verbose; allowed: one of them"])
    return Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.NORMAL
