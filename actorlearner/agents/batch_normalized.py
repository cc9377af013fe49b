"""Networks with batch normalisation: an actor and a critic of layers whose weights have unit norm.

Import this only where TensorFlow may be imported.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tf_agents.agents.sac import sac_agent, tanh_normal_projection_network
from tf_agents.networks import network

from actorlearner.agents.encoder import ObservationEncoder
from actorlearner.agents.precision import product
from actorlearner.environments.environment import Nest
from actorlearner.environments.specs import EnvironmentSpecs

_EPSILON = 1e-3
_MOMENTUM = 0.99


class NormalizedDense(tf.keras.layers.Layer):
    """A linear layer, batch normalisation, and a rectifier.

    Normalisation makes the output independent of the size of the weights, so `project` keeps each unit's
    weights at norm 1: otherwise they grow, and equal gradients turn them less and less. ("Scaling Off-Policy
    Reinforcement Learning with Batch and Weight Normalization", Palenicek et al. 2025,
    https://arxiv.org/abs/2502.07523.)

    Attributes:
      bfloat16: whether it multiplies and normalises in bfloat16; the output is then of that dtype. Moments
        are float32.
    """

    bfloat16 = False

    def __init__(self, inputs: int, units: int) -> None:
        """Makes the variables of a layer from `inputs` numbers to `units`."""
        super().__init__(autocast=False)
        # All replicas compute equal values for what they assign.
        first = tf.VariableAggregation.ONLY_FIRST_REPLICA
        self.kernel = self.add_weight(
            "kernel", [inputs, units], initializer="glorot_uniform", aggregation=first
        )
        self.kernel.assign(_unit_norm(self.kernel))
        self.scale = self.add_weight("scale", [units], initializer="ones")
        self.offset = self.add_weight("offset", [units], initializer="zeros")
        self.mean = self.add_weight("mean", [units], initializer="zeros", trainable=False, aggregation=first)
        self.variance = self.add_weight(
            "variance", [units], initializer="ones", trainable=False, aggregation=first
        )

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the layer's output, [batch, units].

        Args:
          inputs: [batch, inputs].
          training: normalises with the moments of this batch, and adds them to the running moments, with
            which it normalises otherwise.
        """
        outputs = product(inputs, self.kernel, self.bfloat16)
        if not training:
            factor = tf.math.rsqrt(self.variance + _EPSILON) * self.scale
            shift = self.offset - self.mean * factor
            return tf.nn.relu(outputs * tf.cast(factor, outputs.dtype) + tf.cast(shift, outputs.dtype))
        # The fused operation takes images: it is several times as fast as its parts.
        image = tf.reshape(outputs, [-1, 1, 1, outputs.shape[-1]])
        normalized, mean, variance = tf.compat.v1.nn.fused_batch_norm(
            image, self.scale, self.offset, epsilon=_EPSILON
        )
        self._add_moments(mean, variance)
        return tf.nn.relu(tf.reshape(normalized, [-1, outputs.shape[-1]]))

    def _add_moments(self, mean: tf.Tensor, variance: tf.Tensor) -> None:
        replicas = tf.distribute.get_replica_context()
        assert replicas is not None, "training is made on replicas"
        if replicas.num_replicas_in_sync > 1:
            mean, variance = replicas.all_reduce(tf.distribute.ReduceOp.MEAN, [mean, variance])
        self.mean.assign_add((1 - _MOMENTUM) * (mean - self.mean))
        self.variance.assign_add((1 - _MOMENTUM) * (variance - self.variance))

    def project(self) -> None:
        """Scales the weights of each unit to norm 1; call it after each update of them."""
        self.kernel.assign(_unit_norm(self.kernel))


def _unit_norm(kernel: tf.Tensor) -> tf.Tensor:
    return kernel / (tf.norm(kernel, axis=0, keepdims=True) + 1e-8)


class Critic(tf.keras.layers.Layer):
    """From observations and actions to Q."""

    def __init__(self, specs: EnvironmentSpecs, layers: Sequence[int]) -> None:
        """Makes the variables; `layers`: units of each hidden layer."""
        super().__init__(autocast=False)
        self._encoder = ObservationEncoder(specs)
        action = specs.action
        self._center, self._range = (
            (action.maximum + action.minimum) / 2,
            (action.maximum - action.minimum) / 2,
        )
        self.hidden = _hidden_layers(self._encoder.units + int(action.shape[0]), layers)
        self._output = tf.keras.layers.Dense(1)
        # An unused call makes the variables of the encoder and of the last layer.
        zeros = tf.nest.map_structure(lambda spec: tf.zeros([1, *spec.shape], spec.dtype), specs.observation)
        self(zeros, tf.zeros([1, *action.shape]))

    def call(self, observation: Nest, action: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the Q values of a batch, float32 [batch]."""
        outputs = tf.concat([self._encoder(observation), (action - self._center) / self._range], axis=1)
        for layer in self.hidden:
            outputs = layer(outputs, training=training)
        return tf.squeeze(self._output(tf.cast(outputs, tf.float32)), axis=1)


class Actor(network.Network):
    """From observations to the distribution of an action, squashed by tanh into its bounds."""

    def __init__(
        self, input_tensor_spec: Nest, specs: EnvironmentSpecs, layers: Sequence[int], name: str = "Actor"
    ) -> None:
        """Makes the layers; `layers`: units of each hidden layer."""
        super().__init__(input_tensor_spec, state_spec=(), name=name)
        self._encoder = ObservationEncoder(specs)
        self.hidden = _hidden_layers(self._encoder.units, layers)
        self._projection = tanh_normal_projection_network.TanhNormalProjectionNetwork(
            specs.action, std_transform=sac_agent.std_clip_transform
        )

    def call(
        self, observation: Nest, step_type: Any = (), network_state: Any = (), training: bool = False
    ) -> Any:
        """Returns the distribution for a batch of observations, and the state as it is."""
        outputs = self._encoder(observation)
        for layer in self.hidden:
            outputs = layer(outputs, training=training)
        distribution, _ = self._projection(tf.cast(outputs, tf.float32), outer_rank=1, training=training)
        return distribution, network_state


def _hidden_layers(inputs: int, layers: Sequence[int]) -> list[NormalizedDense]:
    return [NormalizedDense(size, units) for size, units in zip([inputs, *layers[:-1]], layers, strict=True)]
