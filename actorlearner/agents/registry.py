"""Finds algorithms by name. Importing this module imports no TensorFlow."""

from typing import Any

from actorlearner.agents.builder import AgentBuilder
from actorlearner.agents.c51 import C51Builder
from actorlearner.agents.ddpg import DdpgBuilder
from actorlearner.agents.dqn import DqnBuilder
from actorlearner.agents.ppo import PpoBuilder
from actorlearner.agents.qr_dqn import QrDqnBuilder
from actorlearner.agents.sac import SacBuilder
from actorlearner.agents.td3 import Td3Builder
from actorlearner.agents.tqc import TqcBuilder
from actorlearner.config.keys import config_keys
from actorlearner.config.own_code import load_own, unloadable
from actorlearner.config.problems import unknown_agent
from actorlearner.config.schema import AgentConfig
from actorlearner.errors import ConfigurationError

_BUILDERS: dict[str, AgentBuilder[Any]] = {
    "c51": C51Builder(),
    "ddpg": DdpgBuilder(),
    "dqn": DqnBuilder(),
    "ppo": PpoBuilder(),
    "qr_dqn": QrDqnBuilder(),
    "sac": SacBuilder(),
    "td3": Td3Builder(),
    "tqc": TqcBuilder(),
}

_ALLOWED = "module:Builder of a class as in actorlearner/agents/builder.py"


def agent_classes() -> dict[str, type[AgentConfig]]:
    """Returns the class of the agent section for the name of each algorithm of this package."""
    return {name: builder.config_class for name, builder in _BUILDERS.items()}


def find_builder(name: Any) -> AgentBuilder[Any]:
    """Returns the builder of an algorithm. Importing the user's own module may print.

    Args:
      name: `agent.name`: the name of an algorithm of this package, or module:Builder of your own.

    Raises:
      ConfigurationError: there is no such algorithm, or it cannot be imported.
    """
    if isinstance(name, str) and ":" in name:
        return _import_builder(name)
    if not isinstance(name, str) or name not in _BUILDERS:
        raise ConfigurationError([unknown_agent(name, _BUILDERS)])
    return _BUILDERS[name]


def agent_class(name: Any) -> type[AgentConfig]:
    """Returns the class of the agent section for a value of `agent.name`; errors as `find_builder`."""
    return find_builder(name).config_class


def _import_builder(name: str) -> AgentBuilder[Any]:
    own_class = load_own(name, "agent.name", _ALLOWED)
    try:
        builder: AgentBuilder[Any] = own_class()
        if not isinstance(builder, AgentBuilder) or not issubclass(builder.config_class, AgentConfig):
            raise TypeError("it is no AgentBuilder whose config_class is a subclass of AgentConfig")
        for each in builder.config_class.__mro__:
            if "__annotations__" in vars(each) and "__dataclass_fields__" not in vars(each):
                raise TypeError(f"{each.__name__} has keys, but is no dataclass")
        config_keys(builder.config_class)  # Raises if a field of the class is no key.
    except (Exception, SystemExit) as error:  # An own class may raise anything, and a script exits.
        raise ConfigurationError([unloadable(name, "agent.name", _ALLOWED, error)]) from error
    return builder
