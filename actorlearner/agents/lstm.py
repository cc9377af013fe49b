"""An LSTM behind the layers that encode observations, for single env steps and along sequences.

Import this only where TensorFlow may be imported.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tree

from actorlearner.environments.environment import Nest

State = tuple[tf.Tensor, ...]
"""The state of an LSTM, each part float32 [batch, units]."""


def state_spec(units: int) -> tuple[tf.TensorSpec, tf.TensorSpec]:
    """Returns the spec of an LSTM's state."""
    return tf.TensorSpec([units], tf.float32), tf.TensorSpec([units], tf.float32)


class Lstm(tf.keras.layers.Layer):
    """Layers that encode an observation, and an LSTM behind them."""

    def __init__(self, layers: Sequence[tf.keras.layers.Layer], units: int) -> None:
        """Makes the LSTM behind `layers`, which take a nest of observations one after another."""
        super().__init__(name="memory", autocast=False)  # The name in saved variables.
        self._encoders = list(layers)
        self._cell = tf.keras.layers.LSTMCell(units)
        self._units = units

    def call(self, observation: Nest, state: Any) -> tuple[tf.Tensor, State]:
        """Returns the output for a batch of observations, [batch, units], and the new state.

        An empty `state` stands for a state of zeros.
        """
        encoding = self._encode(observation)
        if not state:
            state = [tf.zeros([tf.shape(encoding)[0], self._units])] * 2
        output, state = self._cell(encoding, list(state))
        return output, tuple(state)

    def unroll(self, observations: Nest, first: tf.Tensor, state: State) -> tuple[tf.Tensor, State]:
        """Returns the outputs along sequences, and the state behind each env step: [batch, T, units] each.

        Args:
          observations: [batch, T, ...].
          first: bool [batch, T], where an episode begins, and the state is zero.
          state: before the first observation, [batch, units] each.
        """
        steps, batch = int(first.shape[1]), tf.shape(first)[0]
        flat = tree.map_structure(lambda leaf: tf.reshape(leaf, [-1, *leaf.shape[2:]]), observations)
        inputs = tf.reshape(self._encode(flat), [batch, steps, -1])
        keep = 1.0 - tf.cast(first, tf.float32)
        outputs, states = [], []
        for t in range(steps):
            output, carried = self._cell(inputs[:, t], [part * keep[:, t, None] for part in state])
            state = tuple(carried)
            outputs.append(output)
            states.append(state)
        behind = tuple(tf.stack(part, axis=1) for part in zip(*states, strict=True))
        return tf.stack(outputs, axis=1), behind

    def _encode(self, observation: Nest) -> tf.Tensor:
        for layer in self._encoders:
            observation = layer(observation)
        return observation
