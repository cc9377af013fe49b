"""The trajectory layout: TF-Agents' own, so that its unmodified jobs can join a run.

An item is a sequence of n + 1 time steps, as `ReverbAddTrajectoryObserver` writes them: one column for each
part of a Trajectory, each with its own bookkeeping in Reverb. The table has the name and signature of the one
in TF-Agents' distributed example.
"""

import reverb
import tensorflow as tf
import tree
from tf_agents.replay_buffers import reverb_replay_buffer
from tf_agents.trajectories import time_step, trajectory

from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.trajectory_writer import TrajectoryWriter
from actorlearner.replay.transition import RANDOM_POLICY, StoredTransition


class TrajectoryLayout:
    """A ReplayLayout whose items are one transition each, as a sequence of Trajectory steps."""

    table = reverb_replay_buffer.DEFAULT_TABLE
    transitions_per_item = 1

    def __init__(self, specs: EnvironmentSpecs, n_step: int, gamma: float) -> None:
        """Derives the layout; the same arguments give the same layout in every process."""
        step_type, scalar = tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32)
        self._step_spec = trajectory.Trajectory(
            step_type=step_type,
            observation=specs.observation,
            action=specs.action,
            policy_info=(),
            next_step_type=step_type,
            reward=scalar,
            discount=scalar,
        )
        self._n_step = n_step
        self._gamma = gamma

    @property
    def signature(self) -> trajectory.Trajectory:
        """The spec of an item: a Trajectory with an unknown number of steps."""
        return self._with_steps(None)

    @property
    def item_specs(self) -> trajectory.Trajectory:
        """The spec of a sampled item: a Trajectory of n + 1 steps."""
        return self._with_steps(self._n_step + 1)

    def _with_steps(self, steps: int | None) -> trajectory.Trajectory:
        def add_dimension(spec: tf.TensorSpec) -> tf.TensorSpec:
            return tf.TensorSpec([steps, *spec.shape], spec.dtype, spec.name)

        return tree.map_structure(add_dimension, self._step_spec)

    def writer(self, client: reverb.Client, environments: int) -> TrajectoryWriter:
        """Returns a writer with one observer for each environment."""
        return TrajectoryWriter(client, self.table, self._n_step, environments)

    def batches(
        self, items: tf.data.Dataset, batch_size: int, batch_size_per_replica: int
    ) -> tf.data.Dataset:
        """Returns the dataset of batches: Trajectories [batch_size_per_replica, n + 1, ...]."""
        # Batched first, so that the function runs once per batch and not once per item.
        return items.batch(batch_size_per_replica, drop_remainder=True).map(lambda batch: batch.data)

    def decode(self, batch: trajectory.Trajectory) -> StoredTransition:
        """Decodes the transition that starts each sequence ([batch, n + 1, ...] tensors).

        This layout does not store which policy acted: all transitions count as RANDOM_POLICY.

        If an episode ends inside a sequence, the transition's next state is the first of the end's time
        steps, which are all equal.
        """
        ended = tf.equal(batch.step_type[:, :-1], time_step.StepType.LAST)
        taken = tf.cast(tf.math.cumsum(tf.cast(ended, tf.int32), axis=1) == 0, tf.float32)
        discounts = tf.where(taken > 0, batch.discount[:, :-1], 1.0)
        weights = tf.math.cumprod(self._gamma * discounts, axis=1, exclusive=True)
        length = tf.reduce_sum(taken, axis=1)

        def at_end(leaf: tf.Tensor) -> tf.Tensor:
            return tf.gather(leaf, tf.cast(length, tf.int32), axis=1, batch_dims=1)

        return StoredTransition(
            observation=tree.map_structure(lambda leaf: leaf[:, 0], batch.observation),
            action=tree.map_structure(lambda leaf: leaf[:, 0], batch.action),
            reward=tf.reduce_sum(taken * weights * batch.reward[:, :-1], axis=1),
            discount=self._gamma ** (length - 1) * tf.reduce_prod(discounts, axis=1),
            next_observation=tree.map_structure(at_end, batch.observation),
            policy_train_step=tf.fill(tf.shape(length), tf.constant(RANDOM_POLICY, tf.int64)),
        )

    def transitions(self, items: trajectory.Trajectory) -> StoredTransition:
        """Decodes complete items: one transition of each."""
        return self.decode(items)
