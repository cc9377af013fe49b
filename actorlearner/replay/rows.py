"""The packed layout's rows: a transition is one row for each dtype.

A stock replay item of two time steps is a dozen small tensors, each with its own bookkeeping. Here the
leaves of a transition (observation, action, reward, discount, next observation, ...) lie side by side.
"""

import collections
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tree

from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.transition import StoredTransition

Rows = dict[str, npt.NDArray[Any]]
"""For each dtype name an array [rows, width]."""

_UNUSED = -2
"""The policy train step of a row that holds no transition."""


class _Leaf(NamedTuple):
    """Where one leaf of a StoredTransition lies: columns start to stop of the rows of `dtype`."""

    dtype: str
    start: int
    stop: int
    shape: tuple[int, ...]


class RowFormat:
    """Packs transitions into rows (NumPy, at the actor) and unpacks them (TensorFlow, at the learner).

    Attributes:
      widths: the number of columns of each dtype's rows.
    """

    def __init__(self, specs: EnvironmentSpecs) -> None:
        """Derives the format; the same specs give the same one in every process."""
        scalar = tf.TensorSpec([], tf.float32)
        self._spec = StoredTransition(
            observation=specs.observation,
            action=specs.action,
            reward=scalar,
            discount=scalar,
            next_observation=specs.observation,
            policy_train_step=tf.TensorSpec([], tf.int64),
        )
        self.widths: dict[str, int] = collections.defaultdict(int)
        self._leaves = [self._place(spec) for spec in tree.flatten(self._spec)]
        self._policy_train_step = self._leaves[-1]

    def _place(self, spec: Any) -> _Leaf:
        dtype = spec.dtype.name
        start = self.widths[dtype]
        self.widths[dtype] += int(np.prod(spec.shape.as_list(), dtype=np.int64))
        return _Leaf(dtype, start, self.widths[dtype], tuple(spec.shape.as_list()))

    def unused(self, count: int) -> Rows:
        """Returns rows that hold no transition; only what says so is initialised."""
        rows = {dtype: np.empty((count, width), dtype) for dtype, width in self.widths.items()}
        rows[self._policy_train_step.dtype][:, self._policy_train_step.start] = _UNUSED
        return rows

    def is_used(self, rows: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns a bool [rows] tensor of which rows hold a transition."""
        return rows[self._policy_train_step.dtype][:, self._policy_train_step.start] != _UNUSED

    def pack(self, transition: StoredTransition) -> Rows:
        """Packs a batch of transitions ([rows, ...] arrays) into new rows."""
        leaves = tree.flatten(transition)
        count = len(leaves[-1])
        rows = {dtype: np.empty((count, width), dtype=dtype) for dtype, width in self.widths.items()}
        for place, leaf in zip(self._leaves, leaves, strict=True):
            rows[place.dtype][:, place.start : place.stop] = np.reshape(leaf, (count, -1))
        return rows

    def unpack(self, rows: dict[str, tf.Tensor]) -> StoredTransition:
        """Unpacks rows ([batch, width] tensors) in the graph into tensors [batch, ...]."""
        leaves = [
            tf.reshape(rows[leaf.dtype][:, leaf.start : leaf.stop], (-1, *leaf.shape))
            for leaf in self._leaves
        ]
        stored: StoredTransition = tree.unflatten_as(self._spec, leaves)
        return stored
