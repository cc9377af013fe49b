"""The packed layout: an item is a block of rows, and each row is a complete transition.

A row holds everything that a train step needs, so an item may span the end of an episode, and no transition
is lost there.
"""

from typing import Any

import reverb
import tensorflow as tf
from tf_agents.replay_buffers import reverb_utils

from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.item_size import rows_per_item
from actorlearner.replay.n_step import NStepTransitions
from actorlearner.replay.rows import ROWS, RowFormat
from actorlearner.replay.transition import StoredTransition
from actorlearner.replay.writer import ReplayWriter


class _ItemStep(dict[str, Any]):
    """A block of rows with the interface of the steps that the observer takes."""

    def is_boundary(self) -> bool:
        """Returns False: rows are independent of each other, so no episode ends here for the observer."""
        return False


class PackedWriter(ReplayWriter):
    """Gathers transitions into blocks of rows and writes each block as an item.

    All environments of an actor share the items, so the rows of an item are less correlated than consecutive
    steps of one environment.
    """

    def __init__(
        self,
        client: reverb.Client,
        table: str,
        rows: RowFormat,
        rows_per_item: int,
        transitions: NStepTransitions,
    ) -> None:
        """Opens a writer; it connects at the first item."""
        observer = reverb_utils.ReverbAddTrajectoryObserver(client, table, sequence_length=1, stride_length=1)
        super().__init__([observer])
        self._observer = observer
        self._format = rows
        self._rows_per_item = rows_per_item
        self._transitions = transitions
        # One chunk per item: a chunk that two items share would be sent completely with each of them.
        self._writers[0].configure((ROWS,), num_keep_alive_refs=1, max_chunk_length=1)
        self._start_block()

    def write(self, steps: EnvSteps) -> None:
        """Adds env steps; writes an item whenever a block is full."""
        self._write_transitions(self._transitions.add(steps))

    def _write_leftovers(self) -> None:
        self._write_transitions(self._transitions.end())
        if self._filled:
            self._write_block()

    def _write_transitions(self, transitions: StoredTransition | None) -> None:
        if transitions is None:
            return
        taken = 0
        while taken < len(transitions.reward):
            fitted = self._format.write(transitions, taken, self._records, self._filled)
            taken += fitted
            self._filled += fitted
            if self._filled == self._rows_per_item:
                self._write_block()

    def _write_block(self) -> None:
        self._observer(_ItemStep({ROWS: self._format.as_bytes(self._records)}))
        self._start_block()

    def _start_block(self) -> None:
        # Each item gets its own arrays: Reverb's writer may still read them later.
        self._records = self._format.unused(self._rows_per_item)
        self._filled = 0


class PackedLayout:
    """A ReplayLayout whose items have a single step: a block of rows."""

    table = "packed_experience"

    def __init__(self, specs: EnvironmentSpecs, n_step: int, gamma: float) -> None:
        """Derives the layout; the same arguments give the same layout in every process."""
        self.format = RowFormat(specs)
        self.transitions_per_item = rows_per_item(self.format.width)
        self._n_step = n_step
        self._gamma = gamma

    @property
    def signature(self) -> dict[str, tf.TensorSpec]:
        """The spec of an item: uint8 [1, transitions_per_item, bytes of a row]."""
        return {ROWS: tf.TensorSpec([1, self.transitions_per_item, self.format.width], tf.uint8, ROWS)}

    @property
    def item_specs(self) -> dict[str, tf.TensorSpec]:
        """The same as `signature`: all its dimensions are known."""
        return self.signature

    def writer(self, client: reverb.Client, environments: int) -> PackedWriter:
        """Returns a writer for an actor's environments, which share its items."""
        transitions = NStepTransitions(self._n_step, self._gamma, environments)
        return PackedWriter(client, self.table, self.format, self.transitions_per_item, transitions)

    def batches(
        self, items: tf.data.Dataset, batch_size: int, batch_size_per_replica: int
    ) -> tf.data.Dataset:
        """Returns the dataset of batches: uint8 [batch_size_per_replica, bytes of a row].

        `batch_size` items make as many batches as an item has rows; each batch takes one random row of each
        item. A batch is therefore distributed as if single transitions had been drawn independently and
        uniformly, at a fraction of the cost; only the batches from the same items depend on each other.
        """

        def dealt(item: Any) -> tf.Tensor:
            rows = tf.reshape(item.data[ROWS], (batch_size * self.transitions_per_item, self.format.width))
            order = tf.reshape(self._order(rows, batch_size), (-1, batch_size_per_replica))
            return tf.gather(rows, order)

        return items.batch(batch_size, drop_remainder=True).map(dealt).unbatch()

    def _order(self, rows: tf.Tensor, count: int) -> tf.Tensor:
        """Returns indices of rows: int32 [rows per item, count], one batch in each line."""
        rows_of_item = self.transitions_per_item
        # Each item has a random order of its own. In the order of writing, the batches would follow the
        # environments through time, and consecutive batches would be much alike.
        turn = tf.transpose(tf.argsort(tf.random.uniform([count, rows_of_item])))
        order = turn + rows_of_item * tf.range(count)
        # An item that was not full has no row for some of the batches. Random rows of other items replace it
        # there, so that every transition is equally likely.
        is_used = self.format.is_used(rows)
        used = tf.where(is_used)[:, 0]
        others = tf.random.uniform([rows_of_item, count], maxval=tf.size(used), dtype=tf.int32)
        return tf.where(tf.gather(is_used, order), order, tf.cast(tf.gather(used, others), tf.int32))

    def decode(self, batch: tf.Tensor) -> StoredTransition:
        """Decodes a batch of `batches` in the graph."""
        return self.format.unpack(batch)

    def transitions(self, items: dict[str, tf.Tensor]) -> StoredTransition:
        """Decodes complete items; unused rows are left out."""
        rows = tf.reshape(items[ROWS], (-1, self.format.width))
        return self.format.unpack(tf.boolean_mask(rows, self.format.is_used(rows)))
