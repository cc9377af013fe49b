"""C51, for one discrete action: a network estimates the distribution of returns as a histogram.

Details that matter:
- The histogram's range (`min_value`, `max_value`) has to hold all discounted returns; returns outside count
  as its ends.
- The loss is the cross-entropy to the next value's histogram, shifted by the reward and projected back on the
  same bins. It cannot be compared with errors in Q.
- Adam's epsilon is large, as in the paper: with the usual one, training is less stable.
"""

import dataclasses
from typing import TYPE_CHECKING

from actorlearner.agents.action_values import ActionValueBuilder, DistributionalConfig
from actorlearner.agents.checks import check_discrete_action, check_observation
from actorlearner.config.problems import problem
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent

    from actorlearner.agents.encoder import AgentSpecs


@dataclasses.dataclass(frozen=True)
class C51Config(DistributionalConfig):
    """The keys of C51.

    The defaults are those of "A Distributional Perspective on Reinforcement Learning" (Bellemare et al. 2017,
    https://arxiv.org/abs/1707.06887), with smaller networks and target networks that follow slowly.
    """

    name: str = setting("c51", "The algorithm: Categorical DQN, for one discrete action.")
    td_loss: str = setting(
        "cross_entropy", "Loss: the cross-entropy of the histograms.", choices=("cross_entropy",)
    )
    atoms: int = setting(51, "Bins of the histogram.", at_least=2)
    min_value: float = setting(-10.0, "The lowest return in the histogram.")
    max_value: float = setting(10.0, "The highest return in the histogram.")


class C51Builder(ActionValueBuilder[C51Config]):
    """Makes the agent: TF-Agents' DQN with a loss of its own."""

    config_class = C51Config

    def make_agent(
        self, config: C51Config, specs: "AgentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations and for one integer action from 0 up."""
        import tensorflow as tf
        from tf_agents.agents.categorical_dqn.categorical_dqn_agent import project_distribution

        from actorlearner.agents.distributional_agent import distributional_agent

        check_observation("c51", specs)
        check_discrete_action("c51", specs)
        if config.min_value >= config.max_value:
            less = f"less than agent.max_value, {config.max_value:g}"
            line = problem("agent.min_value", f"{config.min_value:g} cannot work", less)
            raise ConfigurationError([line])
        support = tf.linspace(config.min_value, config.max_value, config.atoms)

        def mean(logits: tf.Tensor) -> tf.Tensor:
            return tf.reduce_sum(tf.nn.softmax(logits) * support, axis=-1)

        def loss(
            logits: tf.Tensor, next_logits: tf.Tensor, rewards: tf.Tensor, discounts: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            shifted = rewards[:, None] + discounts[:, None] * support
            target = project_distribution(shifted, tf.nn.softmax(next_logits), support)
            cross_entropy = tf.nn.softmax_cross_entropy_with_logits(target, logits)
            return cross_entropy, cross_entropy

        return distributional_agent(config, specs, train_step, config.atoms, mean, loss)
