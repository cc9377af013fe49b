"""The networks of PPO: the distribution of an action, and values.

Import this only where TensorFlow may be imported.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.networks import network

from actorlearner.agents.encoder import AgentSpecs, ObservationEncoder
from actorlearner.agents.lstm import Lstm, state_spec
from actorlearner.environments.environment import Nest

_NEVER = -1e9
"""The logit of an action that is not allowed."""
_LEAST_VARIANCE = 1e-6


class ActorNetwork(network.Network):
    """A network from observations to the distribution of one action."""

    def __init__(
        self,
        specs: AgentSpecs,
        layers: Sequence[int],
        *,
        initial_std: float,
        lstm_units: int | None,
        smooth_noise: bool,
        mask: str | None,
        name: str = "Actor",
    ) -> None:
        """Makes the layers.

        Args:
          specs: of the environment; the action is one integer from 0 up, or a bounded float vector.
          layers: units of each hidden layer.
          initial_std: the first standard deviation of continuous actions, in halves of their range.
          lstm_units: units of an LSTM behind the hidden layers; None for none.
          smooth_noise: whether the standard deviation depends on the state, see smooth_noise.py.
          mask: `agent.action_mask`.
          name: of the network.
        """
        state = () if lstm_units is None else state_spec(lstm_units)
        super().__init__(specs.observation, state_spec=state, name=name)
        self._mask = mask
        action = specs.action
        self._discrete = action.dtype.is_integer
        self._dtype = action.dtype
        units = int(action.maximum) + 1 if self._discrete else int(action.shape[0])
        self.body = make_body(specs, layers, lstm_units)
        # A small last layer: the first policy does nearly the same everywhere.
        self._output = tf.keras.layers.Dense(units, kernel_initializer=_orthogonal(0.01))
        if not self._discrete:
            low, high = np.broadcast_to(action.minimum, [units]), np.broadcast_to(action.maximum, [units])
            self._center, self._range = (high + low) / 2, (high - low) / 2
            shape, std = [units], initial_std
            if smooth_noise:  # The variance is a sum over all hidden units.
                shape, std = [layers[-1], units], std / math.sqrt(layers[-1])
            self._log_std = tf.Variable(tf.fill(shape, math.log(std)), name="log_std")

    def call(
        self, observation: Nest, step_type: Any = (), network_state: Any = (), training: bool = False
    ) -> Any:
        """Returns the distribution for a batch of observations, and the state."""
        hidden, state = self.body(observation, network_state)
        return self.head(hidden, observation), state

    def head(self, hidden: tf.Tensor, observation: Nest) -> tfp.distributions.Distribution:
        """Returns the distribution for a batch of the body's outputs; `observation` has the mask."""
        output = self._output(hidden)
        if self._discrete:
            output = self._masked(output, observation)
            return tfp.distributions.Categorical(logits=output, dtype=self._dtype)
        std = tf.exp(self._log_std)
        if std.shape.rank == 2:  # Without a gradient: noise must not train the hidden layers.
            std = tf.sqrt(tf.square(tf.stop_gradient(hidden)) @ tf.square(std) + _LEAST_VARIANCE)
        mean = self._center + self._range * output
        return tfp.distributions.MultivariateNormalDiag(mean, std * self._range * tf.ones_like(output))

    @property
    def noise_shape(self) -> tuple[int, int]:
        """Hidden units and actions, for `deviation`."""
        return tuple(self._log_std.shape)

    def deviation(self, hidden: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        """Returns by how much smooth noise moves actions from their mean, float32 [batch, actions].

        It is h(s) E of smooth_noise.py, in the action's units.

        Args:
          hidden: h(s), the body's outputs, float32 [batch, hidden units].
          noise: standard normal numbers, float32 [batch, hidden units, actions]; their products with the
            learned standard deviations are E.
        """
        return self._range * tf.einsum("bh,bha->ba", hidden, noise * tf.exp(self._log_std))

    def _masked(self, logits: tf.Tensor, observation: Nest) -> tf.Tensor:
        if self._mask is None:
            return logits
        return tf.where(tf.cast(observation[self._mask], tf.bool), logits, _NEVER)


class ValueNetwork(network.Network):
    """A network from observations to their values, with a body of its own or with the actor's."""

    def __init__(
        self, input_tensor_spec: Nest, body: tf.keras.layers.Layer, state: Any = (), name: str = "Value"
    ) -> None:
        """Puts one layer behind `body`; `state`: the spec of its state."""
        super().__init__(input_tensor_spec, state_spec=state, name=name)
        self._body = body
        self._output = tf.keras.layers.Dense(1, kernel_initializer=_orthogonal(1.0))

    def call(
        self, observation: Nest, step_type: Any = (), network_state: Any = (), training: bool = False
    ) -> Any:
        """Returns the values of a batch of observations, float32 [batch], and the state."""
        hidden, state = self._body(observation, network_state)
        return self.head(hidden), state

    def head(self, hidden: tf.Tensor) -> tf.Tensor:
        """Returns the values for the body's outputs, [..., units]."""
        return tf.squeeze(self._output(hidden), -1)


class Feedforward(tf.keras.layers.Layer):
    """Layers one after another, called as an Lstm is."""

    def __init__(self, layers: Sequence[tf.keras.layers.Layer]) -> None:
        """Calls `layers` in this order."""
        super().__init__(name="feedforward", autocast=False)
        self._encoders = list(layers)

    def call(self, observation: Nest, state: Any) -> tuple[tf.Tensor, Any]:
        """Returns the output for a batch of observations, and `state` as it is."""
        for layer in self._encoders:
            observation = layer(observation)
        return observation, state


def make_body(
    specs: AgentSpecs, layers: Sequence[int], lstm_units: int | None = None
) -> tf.keras.layers.Layer:
    """Returns all layers of a network but the last one: the encoder, hidden layers, and possibly an LSTM."""
    encoders = [ObservationEncoder(specs), *(_hidden(count) for count in layers)]
    return Feedforward(encoders) if lstm_units is None else Lstm(encoders, lstm_units)


def _hidden(units: int) -> tf.keras.layers.Layer:
    return tf.keras.layers.Dense(units, activation="tanh", kernel_initializer=_orthogonal(math.sqrt(2)))


def _orthogonal(gain: float) -> Any:
    return tf.keras.initializers.Orthogonal(gain)
