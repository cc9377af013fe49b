"""A small algorithm for tests of the configuration, which need none that can be trained."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from actorlearner.config.checks import Check
from actorlearner.config.load import load_with_sources
from actorlearner.config.problems import unknown_agent
from actorlearner.config.schema import AgentConfig, Config
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError


@dataclasses.dataclass(frozen=True)
class FakeConfig(AgentConfig):
    """The keys of the algorithm `fake`, one of each type."""

    name: str = setting("fake", "The algorithm.")
    gamma: float = setting(0.99, "Discount.", at_least=0, at_most=1)
    layers: list[int] = setting([256, 256], "Units.", at_least=1)
    rates: list[float] = setting([], "Rates.")
    clipping: float | None = setting(None, "Largest norm.", above=0)
    loss: str = setting("huber", "The loss.", choices=("huber", "mse"))
    debug: bool = setting(False, "Whether to debug.")


_CLASSES = {"fake": FakeConfig, "other": AgentConfig}


def agent_class(name: Any) -> type[AgentConfig]:
    """`fake` and `other` are the only algorithms."""
    if not isinstance(name, str) or name not in _CLASSES:
        raise ConfigurationError([unknown_agent(name, _CLASSES)])
    return _CLASSES[name]


def load_config(path: str, overrides: Sequence[str] = (), checks: Sequence[Check] = ()) -> Config:
    """Loads a configuration with these algorithms."""
    return load_with_sources(path, overrides, agent_class, checks)[0]
