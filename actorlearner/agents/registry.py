"""The registered algorithms by name. Importing them imports no TensorFlow."""

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.dqn import DqnBuilder
from actorlearner.agents.sac import SacBuilder
from actorlearner.agents.td3 import Td3Builder
from actorlearner.config.problems import closest, problem, show
from actorlearner.config.schema import AgentConfig
from actorlearner.errors import ConfigurationError

_BUILDERS: dict[str, AgentBuilder] = {"dqn": DqnBuilder(), "sac": SacBuilder(), "td3": Td3Builder()}


def agent_classes() -> dict[str, type[AgentConfig]]:
    """Returns the class of the agent section for each value of `agent.name`."""
    return {name: builder.config_class for name, builder in _BUILDERS.items()}


def find_builder(name: str) -> AgentBuilder:
    """Returns the builder of the algorithm called `name`.

    Raises:
      ConfigurationError: no such algorithm is registered.
    """
    if name not in _BUILDERS:
        wrong = f"unknown agent {show(name)}"
        raise ConfigurationError(
            [problem("agent.name", wrong, "", ", ".join(_BUILDERS), closest(name, _BUILDERS))]
        )
    return _BUILDERS[name]
