"""Loads configurations with the keys of the algorithm that they name."""

from collections.abc import Sequence

from actorlearner.agents.registry import agent_class
from actorlearner.config import load
from actorlearner.config.checks import Check
from actorlearner.config.problems import Sources
from actorlearner.config.schema import Config


def load_config(path: str, overrides: Sequence[str] = (), checks: Sequence[Check] = ()) -> Config:
    """Loads a configuration file, with overrides on top.

    Args:
      path: a YAML file, or the name of a shipped configuration.
      overrides: `section.key=value` each, the value in YAML; the last one for a key counts.
      checks: further checks of the whole configuration.

    Returns:
      The complete configuration; its agent section has the algorithm's own class.

    Raises:
      ConfigurationError: with every problem of the file, the overrides and their combination.
    """
    return load_with_sources(path, overrides, checks)[0]


def load_with_sources(
    path: str, overrides: Sequence[str] = (), checks: Sequence[Check] = ()
) -> tuple[Config, Sources]:
    """Loads a configuration as `load_config` does; also returns where the value of each key comes from."""
    return load.load_with_sources(path, overrides, agent_class, checks)
