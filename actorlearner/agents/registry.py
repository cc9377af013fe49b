"""Finds an algorithm's builder by its name in the configuration."""

import difflib
import importlib

from actorlearner.agents.builder import AgentBuilder
from actorlearner.errors import ConfigurationError

_BUILDERS = {
    "dqn": "actorlearner.agents.dqn:DqnBuilder",
    "sac": "actorlearner.agents.sac:SacBuilder",
    "td3": "actorlearner.agents.td3:Td3Builder",
}


def agent_names() -> list[str]:
    """The names that `agent.name` may have."""
    return sorted(_BUILDERS)


def find_builder(name: str) -> AgentBuilder:
    """Returns the builder of the algorithm called `name`; imports its module, not TensorFlow.

    Raises:
      ConfigurationError: there is no such algorithm.
    """
    if name not in _BUILDERS:
        close = difflib.get_close_matches(name, agent_names(), n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise ConfigurationError(
            [f"agent.name: unknown agent {name!r}{hint}; allowed: {', '.join(agent_names())}"]
        )
    module, _, attribute = _BUILDERS[name].partition(":")
    builder: AgentBuilder = getattr(importlib.import_module(module), attribute)()
    return builder
