"""The packed layout's rows: a unit of experience, a transition or a sequence, as one row of bytes.

A stock replay item of two time steps is a dozen small tensors, each with its own bookkeeping in Reverb. Here
the leaves of a unit (observation, action, reward, discount, next observation, ...) lie side by side in one
row, each in its own dtype. So an item is a single tensor for Reverb.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tree

from actorlearner.agents.experience import Stored

ROWS = "rows"
"""The only column of an item in this layout."""

_UNUSED = -2
"""The policy train step of a row that holds no unit."""


class _Leaf(NamedTuple):
    """One leaf of a unit: the bytes from start to stop of a row."""

    start: int
    stop: int
    dtype: tf.DType
    shape: tuple[int, ...]


class RowFormat:
    """Packs units into rows (NumPy, at the actor) and unpacks them (TensorFlow, at the learner).

    Attributes:
      dtype: NumPy's record dtype of a row, with a field `f0`, `f1`, ... for each leaf.
      width: bytes in a row.
    """

    def __init__(self, spec: Stored) -> None:
        """Derives the format from the TensorSpecs of one unit; equal specs give an equal format."""
        self._spec = spec
        leaves = tree.flatten(spec)
        self.dtype = np.dtype([("", leaf.dtype.as_numpy_dtype, tuple(leaf.shape)) for leaf in leaves])
        self.width = self.dtype.itemsize
        self._names: tuple[str, ...] = self.dtype.names or ()
        # The leaf whose value shows whether a row holds a unit.
        self._used_leaf = next(i for i, leaf in enumerate(leaves) if leaf is spec.policy_train_step)
        self._leaves: list[_Leaf] = []
        start = 0
        for name, leaf in zip(self._names, leaves, strict=True):
            stop = start + self.dtype[name].itemsize
            self._leaves.append(_Leaf(start, stop, leaf.dtype, tuple(leaf.shape)))
            start = stop

    def unused(self, count: int) -> npt.NDArray[np.void]:
        """Returns records without units; only `policy_train_step` is initialised, to _UNUSED."""
        records = np.empty(count, self.dtype)
        records[self._names[self._used_leaf]] = _UNUSED
        return records

    def write(self, units: Stored, first: int, records: npt.NDArray[np.void], start: int) -> int:
        """Copies units ([batch, ...] arrays, from index `first` on) into records, from `start` on.

        Returns the number of units that fitted.
        """
        count = min(len(units.policy_train_step) - first, len(records) - start)
        for name, leaf in zip(self._names, tree.flatten(units), strict=True):
            records[name][start : start + count] = leaf[first : first + count]
        return count

    def as_bytes(self, records: npt.NDArray[np.void]) -> npt.NDArray[np.uint8]:
        """Returns the records as a uint8 array [records, width], without copying."""
        return records.view(np.uint8).reshape(len(records), self.width)

    def is_used(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns which rows (uint8 [batch, width]) hold a unit, in the graph: bool [batch]."""
        return self._read(rows, self._leaves[self._used_leaf]) != _UNUSED

    def unpack(self, rows: tf.Tensor) -> Any:
        """Unpacks rows (uint8 [batch, width]) in the graph into a unit with tensors [batch, ...]."""
        leaves: Any = [self._read(rows, leaf) for leaf in self._leaves]
        stored: Stored = tree.unflatten_as(self._spec, leaves)
        return stored

    def _read(self, rows: tf.Tensor, leaf: _Leaf) -> tf.Tensor:
        part = tf.reshape(rows[:, leaf.start : leaf.stop], (-1, *leaf.shape, leaf.dtype.size))
        if leaf.dtype.size == 1:
            part = tf.squeeze(part, -1)
        return tf.cast(part, tf.bool) if leaf.dtype == tf.bool else tf.bitcast(part, leaf.dtype)
