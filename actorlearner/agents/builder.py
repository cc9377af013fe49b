"""What an algorithm must provide: its configuration keys and a way to make the agent.

This is all that roles and replay know of an algorithm. Nothing here imports TensorFlow, because the
configuration is checked before TensorFlow is loaded; builders import it inside `make_agent`.
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
        """Makes the networks, optimisers and agent; the caller holds the strategy's scope.

        Args:
          config: an instance of `config_class`.
          specs: tensor specs of the environment, without a batch dimension.
          train_step: scalar int64 variable that the agent increments once a train step.

        Returns:
          An agent whose `train` takes a batched `trajectory.Transition` ([B, ...], no time
          dimension), whose `collect_policy` explores, and whose `policy` is exploited greedily. It makes
          variables and applies gradients in an order that is the same in every process (no order of a
          set's): learners that train as one go by position.

        Raises:
          ConfigurationError: the algorithm cannot act in an environment with these specs.
        """
