"""Running means and deviations of observations and rewards.

Import this only where TensorFlow may be imported.
"""

from typing import Any

import tensorflow as tf


class RunningMoments(tf.Module):
    """The mean and variance of all values so far, over all replicas.

    Attributes:
      count, mean, m2: float32 variables: the number of values, their mean, and the sum of their squared
        differences from it. (Chan et al. 1979, "Updating Formulae and a Pairwise Algorithm for Computing
        Sample Variances".)
    """

    def __init__(self, spec: tf.TensorSpec) -> None:
        """Starts without values of this spec."""
        super().__init__()
        self._rank = spec.shape.rank

        def variable(shape: Any, name: str) -> tf.Variable:
            return tf.Variable(
                tf.zeros(shape),
                trainable=False,
                name=name,
                synchronization=tf.VariableSynchronization.ON_WRITE,
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,  # They are equal on all.
            )

        self.count = variable([], "count")
        self.mean = variable(spec.shape, "mean")
        self.m2 = variable(spec.shape, "m2")

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
        # Differences from the present mean, so that sums of squares do not cancel.
        shifted = values - self.mean
        sums = [
            tf.reduce_sum(weights),
            tf.reduce_sum(spread * shifted, axes),
            tf.reduce_sum(spread * tf.square(shifted), axes),
        ]
        replicas = tf.distribute.get_replica_context()
        assert replicas is not None, "updates are made on replicas"
        if replicas.num_replicas_in_sync > 1:
            sums = replicas.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        count, first, second = sums
        total = self.count + count
        safe = tf.maximum(total, 1.0)
        self.m2.assign_add(second - tf.square(first) / safe)
        self.mean.assign_add(first / safe)
        self.count.assign(total)

    @property
    def deviation(self) -> tf.Tensor:
        """The standard deviation; 1 before the second value."""
        variance = self.m2 / tf.maximum(self.count, 1.0)
        return tf.where(self.count > 1.0, tf.sqrt(variance) + 1e-6, tf.ones_like(variance))
