"""Imports what a key of the configuration names as module:attribute."""

import importlib
import sysconfig
import traceback
from pathlib import Path
from typing import Any

from actorlearner.config.problems import problem, show
from actorlearner.errors import ConfigurationError, one_line

_OTHERS_CODE = (
    "<",  # Code without a file, such as <frozen importlib>.
    f"{Path(__file__).parents[1]}/",
    f"{sysconfig.get_path('stdlib')}/",
    f"{sysconfig.get_path('purelib')}/",
)


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
    return problem(key, f"{show(name)} cannot be loaded: {one_line(error)}{raised_at(error)}", allowed)


def raised_at(error: BaseException) -> str:
    """Returns " at FILE:LINE": the last of the user's own lines before an error; empty if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_OTHERS_CODE)]
    return f" at {own[-1].filename}:{own[-1].lineno}" if own else ""
