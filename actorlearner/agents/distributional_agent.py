"""Distributions of returns: the network and the DQN agent of C51 and QR-DQN, and the loss of quantiles."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tf_agents.agents.dqn import dqn_agent
from tf_agents.networks import network

from actorlearner.agents.action_values import DistributionalConfig, agent_arguments
from actorlearner.agents.encoder import AgentSpecs, ObservationEncoder
from actorlearner.agents.optimizer import adam, create_moments
from actorlearner.environments.environment import Nest

Mean = Callable[[tf.Tensor], tf.Tensor]
"""Takes distributions, float32 [batch, actions, atoms]; returns their means, float32 [batch, actions]."""

Loss = Callable[[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
"""Takes the network's outputs for the actions taken and for the next greedy actions (float32 [batch, atoms]),
rewards and discounts (float32 [batch]); returns losses and errors, float32 [batch]."""


class ValueDistributionNetwork(network.Network):
    """A network from observations to a distribution of returns for each action.

    Called as a network, it returns the means: Q values, float32 [batch, actions].
    """

    def __init__(
        self, specs: AgentSpecs, layers: list[int], atoms: int, mean: Mean, name: str = "ValueDistribution"
    ) -> None:
        """Makes hidden layers with the units `layers`; `atoms` numbers describe one distribution."""
        super().__init__(specs.observation, state_spec=(), name=name)
        actions = int(specs.action.maximum) + 1
        self._encoder = ObservationEncoder(specs)
        self._layers = [tf.keras.layers.Dense(units, activation="relu") for units in layers]
        self._layers.append(tf.keras.layers.Dense(actions * atoms))
        self._shape = (-1, actions, atoms)
        self.mean = mean

    def call(self, inputs: Nest, step_type: Any = (), network_state: Any = (), training: bool = False) -> Any:
        """Returns the Q values of a batch of observations, and the state."""
        return self.mean(self.distribution(inputs)), network_state

    def distribution(self, observation: Nest) -> tf.Tensor:
        """Returns the last layer's output, float32 [batch, actions, atoms]."""
        hidden = self._encoder(observation)
        for layer in self._layers:
            hidden = layer(hidden)
        return tf.reshape(hidden, self._shape)


class DistributionalAgent(dqn_agent.DqnAgent):
    """A DQN agent whose loss compares distributions; the target network chooses and values next actions."""

    def __init__(self, *arguments: Any, distribution_loss: Loss, **keywords: Any) -> None:
        """Makes a DqnAgent of a ValueDistributionNetwork, with this loss."""
        self._distribution_loss = distribution_loss
        super().__init__(*arguments, **keywords)

    def _compute_q_values(self, time_steps: Any, actions: tf.Tensor, training: bool = False) -> tf.Tensor:
        return tf.gather(self._q_network.distribution(time_steps.observation), actions, axis=1, batch_dims=1)

    def _compute_next_q_values(self, next_time_steps: Any, info: Any) -> tf.Tensor:
        distributions = self._target_q_network.distribution(next_time_steps.observation)
        values = self._target_q_network.mean(distributions)
        if self._observation_and_action_constraint_splitter is not None:
            _, mask = self._observation_and_action_constraint_splitter(next_time_steps.observation)
            values = tf.where(tf.cast(mask, tf.bool), values, values.dtype.min)
        return tf.gather(distributions, tf.argmax(values, axis=1), axis=1, batch_dims=1)

    def _td_loss(
        self, values: tf.Tensor, next_values: tf.Tensor, rewards: tf.Tensor, discounts: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return self._distribution_loss(values, tf.stop_gradient(next_values), rewards, discounts)


def distributional_agent(
    config: DistributionalConfig,
    specs: AgentSpecs,
    train_step: tf.Variable,
    atoms: int,
    mean: Mean,
    loss: Loss,
) -> DistributionalAgent:
    """Returns the agent of an algorithm whose distributions have `atoms`, with their mean and its loss."""
    agent = DistributionalAgent(
        specs.time_step,
        specs.action,
        q_network=ValueDistributionNetwork(specs, config.layers, atoms, mean),
        optimizer=adam(config.learning_rate, config, train_step, config.adam_epsilon),
        distribution_loss=loss,
        **agent_arguments(config, train_step),
    )
    create_moments(agent._optimizer, agent._q_network.trainable_variables)
    return agent


@tf.custom_gradient
def quantile_losses(estimates: tf.Tensor, targets: tf.Tensor) -> Any:
    """Returns the mean quantile regression loss of each estimate, with Huber's loss for errors up to 1.

    Equation 10 of "Distributional Reinforcement Learning with Quantile Regression"
    (https://arxiv.org/abs/1710.10044), with kappa = 1. The gradient is written out, because TensorFlow's own
    goes over all pairs of quantiles and samples twice as often.

    Args:
      estimates: the quantiles that are learned, float32 [batch, quantiles].
      targets: samples of returns, float32 [batch, samples]; they get no gradient.

    Returns:
      The means over the samples, float32 [batch, quantiles].
    """
    quantiles = estimates.shape[1]
    midpoints = (tf.range(quantiles, dtype=tf.float32)[:, None] + 0.5) / quantiles
    errors = targets[:, None, :] - estimates[:, :, None]
    clipped = tf.clip_by_value(errors, -1.0, 1.0)
    # |midpoint - (error < 0)| times the derivative of Huber's loss, which is the clipped error.
    slopes = midpoints * clipped + (1.0 - 2.0 * midpoints) * tf.minimum(clipped, 0.0)
    # Huber's loss is clipped * (error - clipped / 2).
    losses = tf.reduce_mean(slopes * (errors - 0.5 * clipped), axis=2)

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        return -upstream * tf.reduce_mean(slopes, axis=2), None

    return losses, gradient
