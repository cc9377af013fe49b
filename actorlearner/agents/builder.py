"""The interface of an algorithm: its configuration keys and a function that makes the agent.

Roles and replay know nothing else of it. Builders import TensorFlow only inside `make_agent`, because
the configuration is checked before TensorFlow is loaded.
"""

from typing import TYPE_CHECKING, Protocol

from actorlearner.config.schema import AgentConfig

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent

    from actorlearner.environments.specs import EnvironmentSpecs


class AgentBuilder(Protocol):
    """Makes the agent of one algorithm.

    Attributes:
      config_class: the frozen dataclass of the algorithm's own keys, a subclass of AgentConfig.
    """

    config_class: type[AgentConfig]

    def make_agent(
        self, config: AgentConfig, specs: "EnvironmentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the networks, optimisers and agent; the caller has entered the strategy's scope.

        Args:
          config: an instance of `config_class`.
          specs: tensor specs of the environment, without a batch dimension.
          train_step: scalar int64 variable that the agent increments at each train step.

        Returns:
          An agent whose `train` takes a batched `trajectory.Transition` ([B, ...], no time dimension), whose
          `collect_policy` explores, and whose `policy` is greedy. It must create variables and apply
          gradients in the same order in every process: a group of learners matches them by position.

        Raises:
          ConfigurationError: the algorithm cannot act in an environment with these specs.
        """
