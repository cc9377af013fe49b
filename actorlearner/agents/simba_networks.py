"""The residual networks of SimBa. Import this only where TensorFlow may be imported."""

from typing import Any

import tensorflow as tf
from tf_agents.networks import network
from tf_agents.specs import tensor_spec

from actorlearner.agents.sac import tanh_normal_projection
from actorlearner.environments.environment import Nest

_WIDENING = 4
_EPSILON = 1e-5


class ResidualBody(tf.keras.layers.Layer):
    """Layers from float32 [batch, inputs] to features of mean 0 and variance 1, float32 [batch, units]."""

    def __init__(self, units: int, blocks: int) -> None:
        """Makes the layers; each of the blocks is `_WIDENING` times as wide as `units`."""
        super().__init__(autocast=False)
        self._first = tf.keras.layers.Dense(units, kernel_initializer="orthogonal")
        self._blocks = [_Block(units) for _ in range(blocks)]

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the features of a batch."""
        features = self._first(inputs)
        for block in self._blocks:
            features = block(features)
        return _normalised(features)


class _Block(tf.keras.layers.Layer):
    """Adds to features what two layers make of them, normalised."""

    def __init__(self, units: int) -> None:
        super().__init__(autocast=False)
        self._wide = tf.keras.layers.Dense(
            _WIDENING * units, activation="relu", kernel_initializer="he_normal"
        )
        self._narrow = tf.keras.layers.Dense(units, kernel_initializer="he_normal")

    def call(self, features: tf.Tensor) -> tf.Tensor:
        return features + self._narrow(self._wide(_normalised(features)))


def _normalised(features: tf.Tensor) -> tf.Tensor:
    """Returns features of mean 0 and variance 1: layer normalisation (https://arxiv.org/abs/1607.06450).

    It has no scale and offset of its own: a dense layer follows each, and its weights and bias do the same.
    """
    centred = features - tf.reduce_mean(features, axis=-1, keepdims=True)
    return centred * tf.math.rsqrt(tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True) + _EPSILON)


class ResidualCritic(network.Network):
    """Returns Q for a batch of (observation, action), float32 [batch]."""

    def __init__(
        self, input_tensor_spec: Nest, units: int, blocks: int, name: str = "ResidualCritic"
    ) -> None:
        """Makes the layers.

        Args:
          input_tensor_spec: the specs of an observation, which is one float32 vector, and of an action.
          units: width.
          blocks: number of residual blocks.
          name: of the network.
        """
        super().__init__(input_tensor_spec, state_spec=(), name=name)
        self._body = ResidualBody(units, blocks)
        self._value = tf.keras.layers.Dense(1, kernel_initializer="orthogonal")

    def call(self, inputs: Nest, step_type: Any = (), network_state: Any = (), training: bool = False) -> Any:
        """Returns Q of a batch, and the state."""
        observation, action = inputs
        values = self._value(self._body(tf.concat([observation, action], axis=-1)))
        return tf.reshape(values, [-1]), network_state


class ResidualActor(network.DistributionNetwork):
    """Returns a tanh-squashed normal distribution of actions for a batch of observations."""

    def __init__(
        self,
        input_tensor_spec: tf.TensorSpec,
        action_spec: tensor_spec.BoundedTensorSpec,
        units: int,
        blocks: int,
        name: str = "ResidualActor",
    ) -> None:
        """Makes the layers; arguments as for ResidualCritic, with an observation alone."""
        projection = tanh_normal_projection(action_spec)
        super().__init__(input_tensor_spec, state_spec=(), output_spec=projection.output_spec, name=name)
        self._body = ResidualBody(units, blocks)
        self._projection = projection

    def call(
        self, observation: tf.Tensor, step_type: Any = (), network_state: Any = (), training: bool = False
    ) -> Any:
        """Returns the distribution of a batch, and the state."""
        distribution, _ = self._projection(self._body(observation), outer_rank=1, training=training)
        return distribution, network_state
