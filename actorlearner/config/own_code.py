"""Imports what a key of the configuration names as module:attribute."""

import importlib
from typing import Any

from actorlearner.config.problems import problem, show
from actorlearner.errors import ConfigurationError, one_line


def load_own(name: str, key: str, allowed: str) -> Any:
    """Returns the attribute of a module of the user's. The import may print.

    Args:
      name: module:attribute.
      key: the key whose value it is; with `allowed`, for the message.
      allowed: what may be named instead.

    Raises:
      ConfigurationError: it cannot be imported.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # An own module may raise anything, and a script exits.
        raise ConfigurationError([unloadable(name, key, allowed, error)]) from error


def unloadable(name: str, key: str, allowed: str, error: BaseException) -> str:
    """Returns the problem line for a name that cannot be loaded; arguments as for `load_own`."""
    return problem(key, f"{show(name)} cannot be loaded: {one_line(error)}", allowed)
