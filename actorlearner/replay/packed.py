"""The packed layout: an item is a block of rows, each of them a whole transition.

A row holds all that a train step needs, so an item may span the end of an episode and no transition is
lost there.
"""

from typing import Any

import reverb
import tensorflow as tf

from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.item_size import rows_per_item
from actorlearner.replay.n_step import NStepTransitions
from actorlearner.replay.packed_writer import PackedWriter
from actorlearner.replay.rows import ROWS, RowFormat
from actorlearner.replay.transition import StoredTransition


class PackedLayout:
    """See ReplayLayout: one step an item, a block of rows."""

    table = "packed_experience"

    def __init__(self, specs: EnvironmentSpecs, n_step: int, gamma: float) -> None:
        """Derives the layout; the same arguments give the same layout in every process."""
        self.format = RowFormat(specs)
        self.transitions_per_item = rows_per_item(self.format.width)
        self._n_step = n_step
        self._gamma = gamma

    @property
    def signature(self) -> dict[str, tf.TensorSpec]:
        """See ReplayLayout."""
        return {ROWS: tf.TensorSpec([1, self.transitions_per_item, self.format.width], tf.uint8, ROWS)}

    @property
    def item_specs(self) -> dict[str, tf.TensorSpec]:
        """See ReplayLayout."""
        return self.signature

    def writer(self, client: reverb.Client, environments: int) -> PackedWriter:
        """See ReplayLayout."""
        transitions = NStepTransitions(self._n_step, self._gamma, environments)
        return PackedWriter(client, self.table, self.format, self.transitions_per_item, transitions)

    def batches(
        self, items: tf.data.Dataset, batch_size: int, batch_size_per_replica: int
    ) -> tf.data.Dataset:
        """See ReplayLayout.

        `batch_size` items are dealt out over as many batches as an item has rows, one row of each item to
        each batch. So a batch is what drawing single transitions independently and uniformly would give, at
        a fraction of the cost; only the batches dealt from the same items depend on each other.
        """

        def dealt(item: Any) -> tf.Tensor:
            rows = tf.reshape(item.data[ROWS], (batch_size * self.transitions_per_item, self.format.width))
            order = tf.reshape(self._order(rows, batch_size), (-1, batch_size_per_replica))
            return tf.gather(rows, order)

        return items.batch(batch_size, drop_remainder=True).map(dealt).unbatch()

    def _order(self, rows: tf.Tensor, count: int) -> tf.Tensor:
        """Which row goes where: int32 [rows per item, count], a batch in each line."""
        rows_of_item = self.transitions_per_item
        # A random order of its own for each item. In the order in which they were written, the batches would
        # follow the environments through time, and those one env step apart would be much alike.
        turn = tf.transpose(tf.argsort(tf.random.uniform([count, rows_of_item])))
        order = turn + rows_of_item * tf.range(count)
        # An item that was not full has nothing for some of the batches. Rows of others take its place there,
        # so that no transition is any likelier than another.
        is_used = self.format.is_used(rows)
        used = tf.where(is_used)[:, 0]
        others = tf.random.uniform([rows_of_item, count], maxval=tf.size(used), dtype=tf.int32)
        return tf.where(tf.gather(is_used, order), order, tf.cast(tf.gather(used, others), tf.int32))

    def decode(self, batch: tf.Tensor) -> StoredTransition:
        """See ReplayLayout."""
        return self.format.unpack(batch)

    def transitions(self, items: dict[str, tf.Tensor]) -> StoredTransition:
        """See ReplayLayout."""
        rows = tf.reshape(items[ROWS], (-1, self.format.width))
        return self.format.unpack(tf.boolean_mask(rows, self.format.is_used(rows)))
