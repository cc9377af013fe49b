"""QR-DQN, for one discrete action: a network estimates quantiles of the distribution of returns.

Details that matter:
- No range of returns has to be known, unlike for C51.
- The loss is the quantile regression loss with Huber's around 0: each quantile is pulled up or down by the
  share of next returns above and below it.
- Adam's epsilon is large, as in the paper.
"""

import dataclasses
from typing import TYPE_CHECKING

from actorlearner.agents.action_values import ActionValueBuilder, DistributionalConfig
from actorlearner.agents.checks import check_discrete_action, check_observation
from actorlearner.config.setting import setting

if TYPE_CHECKING:
    import tensorflow as tf
    from tf_agents.agents import tf_agent

    from actorlearner.agents.encoder import AgentSpecs


@dataclasses.dataclass(frozen=True)
class QrDqnConfig(DistributionalConfig):
    """The keys of QR-DQN.

    The defaults are those of "Distributional Reinforcement Learning with Quantile Regression" (Dabney et al.
    2017, https://arxiv.org/abs/1710.10044), with smaller networks and target networks that follow slowly.
    """

    name: str = setting("qr_dqn", "The algorithm: Quantile Regression DQN, for one discrete action.")
    td_loss: str = setting(
        "quantile_huber",
        "Loss: quantile regression, quadratic up to errors of 1.",
        choices=("quantile_huber",),
    )
    quantiles: int = setting(200, "Quantiles of the distribution of returns.", at_least=1)
    learning_rate: float = setting(5e-5, "Adam's learning rate.", above=0)


class QrDqnBuilder(ActionValueBuilder[QrDqnConfig]):
    """Makes the agent: TF-Agents' DQN with a loss of its own."""

    config_class = QrDqnConfig

    def make_agent(
        self, config: QrDqnConfig, specs: "AgentSpecs", train_step: "tf.Variable"
    ) -> "tf_agent.TFAgent":
        """Makes the agent for all encoded observations and for one integer action from 0 up."""
        import tensorflow as tf

        from actorlearner.agents.distributional_agent import distributional_agent, quantile_losses

        check_observation("qr_dqn", specs)
        check_discrete_action("qr_dqn", specs)

        def mean(quantiles: tf.Tensor) -> tf.Tensor:
            return tf.reduce_mean(quantiles, axis=-1)

        def loss(
            values: tf.Tensor, next_values: tf.Tensor, rewards: tf.Tensor, discounts: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            """Equation 10 of the paper, with kappa = 1."""
            targets = rewards[:, None] + discounts[:, None] * next_values
            losses = tf.reduce_sum(quantile_losses(values, targets), axis=1)
            return losses, tf.reduce_mean(targets, axis=1) - tf.reduce_mean(values, axis=1)

        return distributional_agent(config, specs, train_step, config.quantiles, mean, loss)
