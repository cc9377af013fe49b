"""The critics and the losses of TQC."""

from typing import Any

import tensorflow as tf
from tf_agents.agents.ddpg import critic_network
from tf_agents.utils import common

from actorlearner.agents.distributional_agent import quantile_losses
from actorlearner.agents.sac_agent import SacAgent
from actorlearner.environments.environment import Nest


class QuantileCriticNetwork(critic_network.CriticNetwork):
    """A critic that returns quantiles of the distribution of returns, float32 [batch, quantiles]."""

    def __init__(
        self, input_tensor_spec: Nest, quantiles: int, name: str = "QuantileCritic", **keywords: Any
    ) -> None:
        """Makes the layers; arguments as for CriticNetwork."""
        last = tf.keras.layers.Dense(quantiles, kernel_initializer="glorot_uniform", name="quantiles")
        super().__init__(input_tensor_spec, last_layer=last, name=name, **keywords)
        self._quantiles = quantiles

    def call(self, inputs: Nest, step_type: Any = (), network_state: Any = (), training: bool = False) -> Any:
        """Returns the quantiles for a batch of (observation, action), and the state."""
        values, state = super().call(inputs, step_type, network_state, training)
        return tf.reshape(values, [-1, self._quantiles]), state


class TqcAgent(SacAgent):
    """SAC with the losses of TQC."""

    def __init__(self, *arguments: Any, quantiles: int, dropped_quantiles: int, **keywords: Any) -> None:
        """Makes a SacAgent of QuantileCriticNetworks; the numbers of quantiles are per critic."""
        self._kept = 2 * (quantiles - dropped_quantiles)
        super().__init__(*arguments, **keywords)

    def critic_loss(
        self,
        time_steps: Any,
        actions: tf.Tensor,
        next_time_steps: Any,
        td_errors_loss_fn: Any = None,
        gamma: float = 1.0,
        reward_scale_factor: float = 1.0,
        weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the loss of both critics, a scalar; arguments as for SacAgent.

        It is the quantile regression loss towards the smallest quantiles of both target networks together.
        """
        next_actions, next_log_probabilities = self._actions_and_log_probs(next_time_steps)
        targets = self._quantiles(
            (self._target_critic_network_1, self._target_critic_network_2), next_time_steps, next_actions
        )
        kept = tf.sort(tf.concat(targets, axis=1), axis=1)[:, : self._kept]
        values = kept - (tf.exp(self._log_alpha) * next_log_probabilities)[:, None]
        discounts = gamma * next_time_steps.discount
        targets = tf.stop_gradient(
            reward_scale_factor * next_time_steps.reward[:, None] + discounts[:, None] * values
        )
        critics = (self._critic_network_1, self._critic_network_2)
        estimates = self._quantiles(critics, time_steps, actions, training=training)
        losses = tf.add_n([tf.reduce_mean(quantile_losses(each, targets), axis=1) for each in estimates])
        return common.aggregate_losses(per_example_loss=losses, sample_weight=weights).total_loss

    def actor_loss(
        self, time_steps: Any, weights: tf.Tensor | None = None, training: bool | None = True
    ) -> tf.Tensor:
        """Returns the loss of the actor, with the mean of all quantiles, a scalar; arguments as SacAgent.

        TF-Agents calls `alpha_loss` next, which reuses the actions that are sampled here.
        """
        actions, log_probabilities = self._actions_and_log_probs(time_steps, training=bool(training))
        critics = (self._critic_network_1, self._critic_network_2)
        values = tf.reduce_mean(tf.concat(self._quantiles(critics, time_steps, actions), axis=1), axis=1)
        losses = tf.exp(self._log_alpha) * log_probabilities - values
        return common.aggregate_losses(per_example_loss=losses, sample_weight=weights).total_loss

    def _quantiles(
        self, critics: tuple[Any, Any], time_steps: Any, actions: tf.Tensor, training: bool = False
    ) -> list[tf.Tensor]:
        inputs = (time_steps.observation, actions)
        return [critic(inputs, step_type=time_steps.step_type, training=training)[0] for critic in critics]
