"""The packed layout's rows: a transition as one row of bytes.

A stock replay item of two time steps is a dozen small tensors, each with its own bookkeeping in Reverb. Here
the leaves of a transition (observation, action, reward, discount, next observation, ...) lie side by side,
each in its own dtype, so Reverb keeps books for one tensor only, whatever a transition consists of.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tree

from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.transition import StoredTransition

ROWS = "rows"
"""The only column of an item in this layout."""

_UNUSED = -2
"""The policy train step of a row that holds no transition."""


class _Leaf(NamedTuple):
    """One leaf of a StoredTransition: the bytes from start to stop of a row."""

    start: int
    stop: int
    dtype: tf.DType
    shape: tuple[int, ...]


class RowFormat:
    """Packs transitions into rows (NumPy, at the actor) and unpacks them (TensorFlow, at the learner).

    Attributes:
      dtype: NumPy's record dtype of a row, with a field `f0`, `f1`, ... for each leaf.
      width: bytes in a row.
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
        leaves = tree.flatten(self._spec)
        self.dtype = np.dtype([("", leaf.dtype.as_numpy_dtype, tuple(leaf.shape)) for leaf in leaves])
        self.width = self.dtype.itemsize
        self._names: tuple[str, ...] = self.dtype.names or ()
        self._leaves: list[_Leaf] = []
        start = 0
        for name, leaf in zip(self._names, leaves, strict=True):
            stop = start + self.dtype[name].itemsize
            self._leaves.append(_Leaf(start, stop, leaf.dtype, tuple(leaf.shape)))
            start = stop

    def unused(self, count: int) -> npt.NDArray[np.void]:
        """Returns records without transitions; only the field that marks this is initialised."""
        records = np.empty(count, self.dtype)
        records[self._names[-1]] = _UNUSED
        return records

    def write(
        self, transitions: StoredTransition, first: int, records: npt.NDArray[np.void], start: int
    ) -> int:
        """Copies transitions ([batch, ...] arrays, from index `first` on) into records, from `start` on.

        Returns the number of transitions that fitted.
        """
        count = min(len(transitions.reward) - first, len(records) - start)
        for name, leaf in zip(self._names, tree.flatten(transitions), strict=True):
            records[name][start : start + count] = leaf[first : first + count]
        return count

    def as_bytes(self, records: npt.NDArray[np.void]) -> npt.NDArray[np.uint8]:
        """Returns the records as a uint8 array [records, width], without copying."""
        return records.view(np.uint8).reshape(len(records), self.width)

    def is_used(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns which rows (uint8 [batch, width]) hold a transition, in the graph: bool [batch]."""
        return self._read(rows, self._leaves[-1]) != _UNUSED

    def unpack(self, rows: tf.Tensor) -> StoredTransition:
        """Unpacks rows (uint8 [batch, width]) in the graph into tensors [batch, ...]."""
        leaves: Any = [self._read(rows, leaf) for leaf in self._leaves]
        stored: StoredTransition = tree.unflatten_as(self._spec, leaves)
        return stored

    def _read(self, rows: tf.Tensor, leaf: _Leaf) -> tf.Tensor:
        part = tf.reshape(rows[:, leaf.start : leaf.stop], (-1, *leaf.shape, leaf.dtype.size))
        if leaf.dtype.size == 1:
            part = tf.squeeze(part, -1)
        return tf.cast(part, tf.bool) if leaf.dtype == tf.bool else tf.bitcast(part, leaf.dtype)
