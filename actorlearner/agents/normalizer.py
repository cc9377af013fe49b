"""Running means and deviations of observations and rewards.

Import this only where TensorFlow may be imported.
"""

from typing import Any

import tensorflow as tf

from actorlearner.environments.environment import Nest

_CLIP = 10.0
_MIN_VARIANCE = 1e-8  # As in Stable-Baselines3.


class RunningMoments(tf.keras.layers.Layer):
    """The mean and variance of all values so far, over all replicas.

    Attributes:
      count, mean, m2: float32 variables: the number of values, their mean, and the sum of their squared
        differences from it. (Chan et al. 1979, "Updating Formulae and a Pairwise Algorithm for Computing
        Sample Variances".)
    """

    def __init__(self, shape: Any) -> None:
        """Starts with no values; `shape` is the shape of one value."""
        super().__init__(autocast=False)
        self._rank = len(shape)

        def variable(shape: Any, name: str) -> tf.Variable:
            return self.add_weight(
                name,
                shape,
                tf.float32,
                "zeros",
                trainable=False,
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,  # All replicas have equal values.
            )

        self.count = variable([], "count")
        self.mean = variable(shape, "mean")
        self.m2 = variable(shape, "m2")

    def update(self, values: tf.Tensor, valid: tf.Tensor | None = None) -> None:
        """Adds values, in the graph of a replica.

        Args:
          values: [..., *shape] with any number of leading dimensions.
          valid: bool with these leading dimensions, False for values to leave out; None takes all.
        """
        values = tf.cast(values, tf.float32)
        leading = values.shape.rank - self._rank
        weights = tf.ones(tf.shape(values)[:leading]) if valid is None else tf.cast(valid, tf.float32)
        spread = tf.reshape(weights, tf.concat([tf.shape(weights), [1] * self._rank], axis=0))
        axes = list(range(leading))
        shifted = values - self.mean
        count, first = summed_over_replicas([tf.reduce_sum(weights), tf.reduce_sum(spread * shifted, axes)])
        # Centred on the mean of the new values: E[x^2] - E[x]^2 would lose precision.
        distance = first / tf.maximum(count, 1.0)
        (squares,) = summed_over_replicas([tf.reduce_sum(spread * tf.square(shifted - distance), axes)])
        total = self.count + count
        share = count / tf.maximum(total, 1.0)
        self.m2.assign_add(squares + tf.square(distance) * self.count * share)
        self.mean.assign_add(distance * share)
        self.count.assign(total)

    @property
    def deviation(self) -> tf.Tensor:
        """The standard deviation; 1 before the second value."""
        variance = self.m2 / tf.maximum(self.count, 1.0)
        return tf.where(self.count > 1.0, tf.sqrt(variance + _MIN_VARIANCE), tf.ones_like(variance))


def summed_over_replicas(sums: list[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the sums over all replicas."""
    replicas = tf.distribute.get_replica_context()
    assert replicas is not None, "updates are made on replicas"
    if replicas.num_replicas_in_sync == 1:
        return sums
    return list(replicas.all_reduce(tf.distribute.ReduceOp.SUM, sums))


class ObservationNormalizer(tf.keras.layers.Layer):
    """Shifts and scales the floats of observations to mean 0 and deviation 1, and clips them to -10..10.

    It is a layer of all networks of an agent, so that its variables belong to the policy.
    """

    def __init__(self, spec: Nest) -> None:
        """Starts without observations; `spec` is the nest of their specs."""
        super().__init__(autocast=False)
        self._moments = [
            RunningMoments(leaf.shape) if leaf.dtype.is_floating else None for leaf in tf.nest.flatten(spec)
        ]

    def call(self, observation: Nest) -> Nest:
        """Normalises a batch, [batch, ...]; other parts than floats stay as they are."""
        leaves = [
            leaf if moments is None else _normalized(leaf, moments)
            for leaf, moments in zip(tf.nest.flatten(observation), self._moments, strict=True)
        ]
        return tf.nest.pack_sequence_as(observation, leaves)

    def update(self, observation: Nest) -> None:
        """Adds observations with any number of leading dimensions, in the graph of a replica."""
        for leaf, moments in zip(tf.nest.flatten(observation), self._moments, strict=True):
            if moments is not None:
                moments.update(leaf)


def _normalized(leaf: tf.Tensor, moments: RunningMoments) -> tf.Tensor:
    scaled = (tf.cast(leaf, tf.float32) - moments.mean) / moments.deviation
    return tf.clip_by_value(scaled, -_CLIP, _CLIP)
