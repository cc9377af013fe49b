"""The packed layout: how transitions lie in replay, and how they become an agent's training data.

A stock replay item of two time steps is a dozen small tensors, each with its own bookkeeping. Here a
transition is one row for each dtype: its leaves (observation, action, reward, discount, next
observation, ...) side by side. An item is ROWS_PER_ITEM rows. A row holds all that a train step needs,
so an item may span the end of an episode and no transition is lost there.
"""

import collections
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tree
from tf_agents.trajectories import policy_step, time_step, trajectory

from actorlearner.environments.environment import Nest
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.rate_limit import ROWS_PER_ITEM

Rows = dict[str, npt.NDArray[Any]]
"""For each dtype name an array [rows, width]."""


class StoredTransition(NamedTuple):
    """One (s, a, r, discount, s') as it is written; leaves have a leading batch dimension.

    Attributes:
      observation, action, next_observation: nests as the environment's specs say.
      reward, discount: float32; the discount is 0 where the episode terminated, else 1.
      policy_train_step: int64, the train step of the variables that chose the action; -1 for random
        actions.
    """

    observation: Nest
    action: Nest
    reward: Nest
    discount: Nest
    next_observation: Nest
    policy_train_step: Nest


class _Leaf(NamedTuple):
    """Where one leaf of a StoredTransition lies: columns start to stop of the rows of `dtype`."""

    dtype: str
    start: int
    stop: int
    shape: tuple[int, ...]


class TransitionLayout:
    """Packs transitions into rows (NumPy, at the actor) and unpacks them (TensorFlow, at the learner)."""

    def __init__(self, specs: EnvironmentSpecs) -> None:
        """Derives the layout; the same specs give the same layout in every process."""
        scalar = tf.TensorSpec([], tf.float32)
        self._spec = StoredTransition(
            observation=specs.observation,
            action=specs.action,
            reward=scalar,
            discount=scalar,
            next_observation=specs.observation,
            policy_train_step=tf.TensorSpec([], tf.int64),
        )
        self._widths: dict[str, int] = collections.defaultdict(int)
        self._leaves = [self._place(spec) for spec in tree.flatten(self._spec)]

    def _place(self, spec: Any) -> _Leaf:
        dtype = spec.dtype.name
        start = self._widths[dtype]
        self._widths[dtype] += int(np.prod(spec.shape.as_list(), dtype=np.int64))
        return _Leaf(dtype, start, self._widths[dtype], tuple(spec.shape.as_list()))

    @property
    def widths(self) -> dict[str, int]:
        """The number of columns of each dtype's rows."""
        return dict(self._widths)

    @property
    def signature(self) -> dict[str, tf.TensorSpec]:
        """The table signature of an item: one step, holding a block of rows for each dtype."""
        return {
            dtype: tf.TensorSpec([1, ROWS_PER_ITEM, width], tf.as_dtype(dtype), dtype)
            for dtype, width in self._widths.items()
        }

    def pack(self, transition: StoredTransition) -> Rows:
        """Packs a batch of transitions ([rows, ...] arrays) into new rows."""
        leaves = tree.flatten(transition)
        count = len(leaves[-1])
        rows = {dtype: np.empty((count, width), dtype=dtype) for dtype, width in self._widths.items()}
        for place, leaf in zip(self._leaves, leaves, strict=True):
            rows[place.dtype][:, place.start : place.stop] = np.reshape(leaf, (count, -1))
        return rows

    def unpack(self, rows: dict[str, tf.Tensor]) -> tuple[trajectory.Transition, tf.Tensor]:
        """Unpacks rows ([batch, width] tensors) in the graph.

        Returns:
          A Transition with a batch dimension and no time dimension, as agents train on it, and the
          int64 [batch] train steps of the policies that acted.
        """
        leaves = [
            tf.reshape(rows[leaf.dtype][:, leaf.start : leaf.stop], (-1, *leaf.shape))
            for leaf in self._leaves
        ]
        stored: StoredTransition = tree.unflatten_as(self._spec, leaves)
        # Neither end is marked as FIRST or LAST: a row is never a boundary, and the discount alone says
        # whether the next state has a value.
        middle = tf.fill(tf.shape(stored.reward), time_step.StepType.MID)
        before = time_step.TimeStep(
            step_type=middle,
            reward=tf.zeros_like(stored.reward),
            discount=tf.ones_like(stored.discount),
            observation=stored.observation,
        )
        after = time_step.TimeStep(
            step_type=middle,
            reward=stored.reward,
            discount=stored.discount,
            observation=stored.next_observation,
        )
        action = policy_step.PolicyStep(action=stored.action, state=(), info=())
        return trajectory.Transition(before, action, after), stored.policy_train_step
