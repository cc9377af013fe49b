"""The interface of an algorithm: its configuration keys, its experience, and a function that makes the agent.

Roles and replay use an algorithm only through this interface. Builders import TensorFlow only inside their
methods, because the configuration is checked before TensorFlow is loaded.
"""

import abc
from typing import TYPE_CHECKING, Generic, TypeVar

from actorlearner.agents.experience import Experience
from actorlearner.config.schema import AgentConfig

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent

    from actorlearner.agents.encoder import AgentSpecs
    from actorlearner.environments.environment import Nest
    from actorlearner.environments.specs import EnvironmentSpecs


ConfigT = TypeVar("ConfigT", bound=AgentConfig)
"""The class of an algorithm's configuration keys."""


class AgentBuilder(abc.ABC, Generic[ConfigT]):
    """Makes the agent of one algorithm.

    Attributes:
      config_class: the frozen dataclass of the algorithm's own keys, a subclass of AgentConfig.
    """

    config_class: type[ConfigT]

    @abc.abstractmethod
    def make_agent(
        self, config: ConfigT, specs: "AgentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the networks, optimisers and agent; the caller has entered the strategy's scope.

        Args:
          config: an instance of `config_class`.
          specs: tensor specs of the environment, without a batch dimension, and the preprocessing of
            observations.
          train_step: scalar int64 variable that the agent increments at each train step.

        Returns:
          An agent whose `collect_policy` explores, and whose `policy` has the greedy action as the mode of
          its `distribution`. `experience` determines the arguments of its `train`:
          - transitions: a batched `trajectory.Transition` ([B, ...], no time dimension), and weights.
          - sequences: a `StoredSequence`, and weights.
          - sequences that are consumed in iterations: see agents/on_policy_agent.py.
          Weights are float32 [B], or None without priorities. With priorities, the `extra` of the loss has a
          field `td_error`, float32 [B].
          The agent must create variables and apply gradients in the same order in every process: a group of
          learners matches them by position.

        Raises:
          ConfigurationError: the algorithm cannot act in an environment with these specs.
        """

    def experience(self, config: ConfigT) -> Experience:
        """Returns what the algorithm learns from: by default single transitions, drawn uniformly."""
        return Experience()

    def policy_specs(self, config: ConfigT, specs: "EnvironmentSpecs") -> "tuple[Nest, Nest]":
        """Returns the specs of the collect policy's info and of its state, which sequences store.

        Both are nests of TensorSpecs, empty by default. The policy returns the info with each action.

        Raises:
          ConfigurationError: the algorithm cannot act in an environment with these specs.
        """
        return (), ()

    def config_of_actor(self, config: ConfigT, index: int, actors: int) -> ConfigT:
        """Returns the configuration of one collect actor; override it if actors explore differently."""
        return config
