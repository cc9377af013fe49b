"""The trajectory layout: the layout of TF-Agents, so that its unmodified jobs can join a run.

An item is a sequence of n + 1 time steps, as `ReverbAddTrajectoryObserver` writes them: one column for each
part of a Trajectory, each with its own bookkeeping in Reverb. The table has the name and signature of the
table in TF-Agents' distributed example.
"""

import time

import numpy as np
import reverb
import tensorflow as tf
import tree
from tf_agents.replay_buffers import reverb_replay_buffer, reverb_utils
from tf_agents.trajectories import time_step, trajectory

from actorlearner.agents.experience import RANDOM_TRAIN_STEP, Experience, StoredTransition
from actorlearner.environments.environment import EnvSteps, Nest
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.writer import PENDING_ITEMS, ReplayWriter, flushed

_FIRST, _MID, _LAST = (np.asarray(step_type, np.int32) for step_type in (0, 1, 2))


class _Unended(trajectory.Trajectory):
    """The last time step of an episode, hidden from the observer as one in the middle.

    At an episode's end, the observer would block without a deadline until all items are confirmed.
    """

    def is_boundary(self) -> bool:
        return False


class TrajectoryWriter(ReplayWriter):
    """Writes every window of n + 1 time steps, with one observer for each environment.

    The last time step of an episode is written n times, so that windows also begin at the last n - 1 env
    steps of the episode.
    """

    def __init__(self, client: reverb.Client, table: str, n_step: int, environments: int) -> None:
        """Opens the writers; they connect at their first item."""
        super().__init__(
            [
                reverb_utils.ReverbAddTrajectoryObserver(client, table, sequence_length=n_step + 1)
                for _ in range(environments)
            ]
        )
        self._n_step = n_step
        self._next_ends: list[trajectory.Trajectory | None] = [None] * environments
        """For each environment, the time step to write if its episode ends now; None between episodes."""
        self._ended: set[int] = set()
        """Environments whose observers have not been reset since the end of the episode."""

    def write(self, steps: EnvSteps) -> None:
        """Adds env steps; blocks if no `flush` has returned True since an episode ended."""
        for i, observer in enumerate(self._observers):
            self._finish_episode(i)
            if not steps.valid[i]:
                self._end_episode(i)
                continue
            action = _row(steps.action, i)
            last = bool(steps.last[i])
            observer(
                trajectory.Trajectory(
                    step_type=_FIRST if steps.first[i] else _MID,
                    observation=_row(steps.observation, i),
                    action=action,
                    policy_info=(),
                    next_step_type=_LAST if last else _MID,
                    reward=np.asarray(steps.reward[i], np.float32),
                    discount=np.asarray(steps.discount[i], np.float32),
                )
            )
            self._next_ends[i] = _end(_row(steps.next_observation, i), action)
            if last:
                self._end_episode(i)

    def _write_leftovers(self) -> None:
        for i in range(len(self._observers)):
            self._end_episode(i)

    def flush(self, timeout_s: float, pending_items: int = PENDING_ITEMS) -> bool:
        """Waits as the base class does, but for all items of an environment whose episode has ended."""
        deadline = time.monotonic() + timeout_s
        for i in sorted(self._ended):
            if not flushed(self._writers[i], 0, deadline):
                return False
            self._finish_episode(i)
        return super().flush(max(0.0, deadline - time.monotonic()), pending_items)

    def _end_episode(self, i: int) -> None:
        end, self._next_ends[i] = self._next_ends[i], None
        if end is None:
            return
        for _ in range(self._n_step):
            self._observers[i](_Unended(*end))
        self._ended.add(i)

    def _finish_episode(self, i: int) -> None:
        """Resets the observer after an episode; blocks until the server has confirmed all items."""
        if i in self._ended:
            self._observers[i].reset(write_cached_steps=False)
            self._ended.remove(i)


def _row(nest: Nest, i: int) -> Nest:
    # A copy: Reverb's writer may still read it after the caller has reused the array.
    return tree.map_structure(lambda leaf: np.array(leaf[i]), nest)


def _end(observation: Nest, action: Nest) -> trajectory.Trajectory:
    return trajectory.Trajectory(
        step_type=_LAST,
        observation=observation,
        action=tree.map_structure(np.zeros_like, action),
        policy_info=(),
        next_step_type=_FIRST,
        reward=np.zeros([], np.float32),
        discount=np.ones([], np.float32),
    )


class TrajectoryLayout:
    """A ReplayLayout whose items are one transition each, as a sequence of Trajectory steps."""

    experience = Experience()
    table = reverb_replay_buffer.DEFAULT_TABLE
    env_steps_per_item = samples_per_item = 1

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
        return items.batch(batch_size_per_replica, drop_remainder=True).map(lambda batch: (batch.data, ()))

    def decode(self, batch: trajectory.Trajectory) -> StoredTransition:
        """Decodes the transition that starts each sequence ([batch, n + 1, ...] tensors).

        This layout does not store which policy acted: all transitions have RANDOM_TRAIN_STEP.

        If an episode ends inside a sequence, the next state is the episode's last time step.
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
            policy_train_step=tf.fill(tf.shape(length), tf.constant(RANDOM_TRAIN_STEP, tf.int64)),
        )
