"""Turns observations of any structure into one vector, in front of any network.

- A uint8 array [height, width, channels] is an image: scaled to 0..1, convolutions, one dense layer. The
  convolutions are those of "Human-level control through deep reinforcement learning" (Mnih et al. 2015), or
  two small ones for images below 36 pixels. Images that do not fit them (84 pixels do) are padded.
- A bounded integer is discrete: one-hot, or one float if it has at most two values. An array of integers is
  encoded element by element.
- Everything else is cast to float32 and flattened.

Import this only where TensorFlow may be imported.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
import tree
from tf_agents.networks import network
from tf_agents.specs import tensor_spec

from actorlearner.agents.normalizer import ObservationNormalizer
from actorlearner.environments.environment import Nest
from actorlearner.environments.specs import EnvironmentSpecs

_MAX_CATEGORIES = 1_024
"""An integer with more possible values than this is refused, not one-hot encoded."""

_MAX_ONE_HOT = 65_536
"""Longest one-hot encoding of one leaf. A uint8 image without a channel axis would need a million numbers."""

_MOST_CHANNELS, _LEAST_WIDTH = 16, 32
"""An image is refused as channels-first if its first axis is shorter than _MOST_CHANNELS and both others have
at least _LEAST_WIDTH elements."""

_IMAGE_UNITS = 256
_LARGE_IMAGE = 36
_LARGE_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
_SMALL_CONVOLUTIONS = ((32, 3, 1), (64, 3, 2))
"""Filters, kernel size and stride of each layer."""


@dataclasses.dataclass(frozen=True)
class AgentSpecs(EnvironmentSpecs):
    """The environment's specs, and the preprocessing of observations in front of every network.

    Attributes:
      normalizer: normalises observations; None leaves them as they are.
      own_encoder: makes the user's layer that replaces the encoder, given the specs of an observation; None
        for the encoder of this module.
    """

    normalizer: ObservationNormalizer | None = None
    own_encoder: Callable[[Nest], tf.keras.layers.Layer] | None = None


def encoded(
    specs: AgentSpecs, make: Callable[[Any], network.Network], is_critic: bool = False
) -> network.Network:
    """Returns the network that `make` makes, behind an encoder if the observations need one.

    Args:
      specs: of the environment.
      make: makes the network, given the spec of an observation or of its encoding.
      is_critic: whether the network takes (observation, action).
    """
    return EncodedNetwork(specs, make, is_critic) if _needs_encoder(specs) else make(specs.observation)


def can_be_encoded(spec: tf.TensorSpec) -> bool:
    """Returns whether the encoder takes this part of an observation."""
    if _is_image(spec):
        height, *others = spec.shape
        return bool(height >= _MOST_CHANNELS or min(others) < _LEAST_WIDTH)
    count = _categories(spec)
    one_hot = 0 < count <= _MAX_CATEGORIES and count * math.prod(spec.shape) <= _MAX_ONE_HOT
    return bool(spec.dtype.is_floating or spec.dtype.is_bool or one_hot)


class ObservationEncoder(tf.keras.layers.Layer):
    """Encodes batches of observations, nests of [batch, ...], into float32 [batch, units].

    Attributes:
      units: the length of the vector.
    """

    def __init__(self, specs: AgentSpecs) -> None:
        """Makes the layers behind the normalizer: one for each leaf of the observation, or the user's own."""
        super().__init__(name="observation_encoder", autocast=False)
        self._normalizer = specs.normalizer
        if specs.own_encoder is not None:
            self._own = specs.own_encoder(specs.observation)
            zeros = tree.map_structure(lambda spec: tf.zeros([1, *spec.shape], spec.dtype), specs.observation)
            self.units = int(self._own(zeros).shape[1])
            return
        self._own = None
        self._parts = [_Part(leaf) for leaf in tf.nest.flatten(specs.observation)]
        self.units = sum(part.units for part in self._parts)

    def call(self, observation: Nest) -> tf.Tensor:
        """Encodes a batch."""
        if self._normalizer is not None:
            observation = self._normalizer(observation)
        if self._own is not None:
            return self._own(observation)
        leaves = tf.nest.flatten(observation)
        return tf.concat([part(leaf) for part, leaf in zip(self._parts, leaves, strict=True)], axis=1)


class EncodedNetwork(network.Network):
    """A network behind an encoder of observations; a critic also takes actions.

    Copies share only the normalizer.
    """

    def __init__(
        self,
        specs: AgentSpecs,
        make: Callable[[tf.TensorSpec], network.Network],
        is_critic: bool = False,
        name: str = "Encoded",
    ) -> None:
        """Makes the encoder and the network; arguments as for `encoded`."""
        inputs = (specs.observation, specs.action) if is_critic else specs.observation
        super().__init__(inputs, state_spec=(), name=name)
        self._is_critic = is_critic
        self._encoder = ObservationEncoder(specs)
        self._network = make(tf.TensorSpec([self._encoder.units], tf.float32))

    def call(self, inputs: Nest, step_type: Any = (), network_state: Any = (), training: bool = False) -> Any:
        """Returns the network's output for a batch, and its state."""
        if self._is_critic:
            observation, action = inputs
            encoding: Nest = (self._encoder(observation), action)
        else:
            encoding = self._encoder(inputs)
        return self._network(encoding, step_type, network_state, training=training)

    @property
    def encoder(self) -> ObservationEncoder:
        """The encoder of observations."""
        return self._encoder

    @property
    def network(self) -> network.Network:
        """The network behind the encoder."""
        return self._network


class _Part(tf.keras.layers.Layer):
    """Encodes one leaf of an observation."""

    def __init__(self, spec: tf.TensorSpec) -> None:
        super().__init__(autocast=False)
        self._size = math.prod(spec.shape)
        self._layers: list[Any] = []
        self._categories = 0
        self._is_image = _is_image(spec)
        if self._is_image:
            self._layers = _image_layers(*spec.shape[:2])
            self.units = _IMAGE_UNITS
        elif (count := _categories(spec)) > 2:  # Two values fit into one float.
            self._categories = count
            self._minimum = int(spec.minimum.min())
            self.units = self._size * count
        else:
            self.units = self._size

    def call(self, leaf: tf.Tensor) -> tf.Tensor:
        if self._is_image:
            encoded = tf.cast(leaf, tf.float32) / 255.0
            for layer in self._layers:
                encoded = layer(encoded)
            return encoded
        if self._categories:
            encoded = tf.one_hot(tf.cast(leaf, tf.int32) - self._minimum, self._categories)
        else:
            encoded = tf.cast(leaf, tf.float32)
        return tf.reshape(encoded, [-1, self.units])


def _image_layers(height: int, width: int) -> list[tf.keras.layers.Layer]:
    large = min(height, width) >= _LARGE_IMAGE
    convolutions = _LARGE_CONVOLUTIONS if large else _SMALL_CONVOLUTIONS
    fits = _covers(convolutions, height) and _covers(convolutions, width)
    padding = "valid" if large and fits else "same"
    layers = [
        tf.keras.layers.Conv2D(filters, kernel, stride, padding, activation="relu")
        for filters, kernel, stride in convolutions
    ]
    return [*layers, tf.keras.layers.Flatten(), tf.keras.layers.Dense(_IMAGE_UNITS, activation="relu")]


def _covers(convolutions: Sequence[tuple[int, int, int]], size: int) -> bool:
    """Returns whether convolutions without padding reach the last of `size` pixels: of 84, but not of 42."""
    for _, kernel, stride in convolutions:
        size, left = divmod(size - kernel, stride)
        if left or size < 0:
            return False
        size += 1
    return True


def _needs_encoder(specs: AgentSpecs) -> bool:
    """Returns whether networks need an encoder in front of them.

    They do unless the observation is one float32 vector, with neither a normalizer nor the user's own layer.
    """
    if specs.normalizer is not None or specs.own_encoder is not None:
        return True
    spec = specs.observation
    return bool(tf.nest.is_nested(spec) or spec.dtype != tf.float32 or spec.shape.rank != 1)


def _is_image(spec: tf.TensorSpec) -> bool:
    """Returns whether a part is an image: uint8 [height, width, channels]."""
    return bool(spec.dtype == tf.uint8 and spec.shape.rank == 3)


def _categories(spec: tf.TensorSpec) -> int:
    """Returns the number of values of a bounded integer; 0 for other parts."""
    if not spec.dtype.is_integer or not isinstance(spec, tensor_spec.BoundedTensorSpec):
        return 0
    return int(spec.maximum.max()) - int(spec.minimum.min()) + 1
