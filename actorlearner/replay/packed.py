"""The packed layout: an item is a block of rows, each of them a whole transition.

A row holds all that a train step needs, so an item may span the end of an episode and no transition is
lost there.
"""

from typing import Any

import reverb
import tensorflow as tf
from tf_agents.trajectories import trajectory

from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.n_step import NStepTransitions
from actorlearner.replay.packed_writer import PackedWriter
from actorlearner.replay.rate_limit import ROWS_PER_ITEM
from actorlearner.replay.rows import RowFormat
from actorlearner.replay.training_data import as_transition


class PackedLayout:
    """See ReplayLayout: one step an item, with a block of ROWS_PER_ITEM rows for each dtype."""

    table = "experience"
    transitions_per_item = ROWS_PER_ITEM

    def __init__(self, specs: EnvironmentSpecs, n_step: int, gamma: float) -> None:
        """Derives the layout; the same arguments give the same layout in every process."""
        self.format = RowFormat(specs)
        self._n_step = n_step
        self._gamma = gamma

    @property
    def signature(self) -> dict[str, tf.TensorSpec]:
        """See ReplayLayout."""
        return {
            dtype: tf.TensorSpec([1, ROWS_PER_ITEM, width], tf.as_dtype(dtype), dtype)
            for dtype, width in self.format.widths.items()
        }

    @property
    def item_specs(self) -> dict[str, tf.TensorSpec]:
        """See ReplayLayout."""
        return self.signature

    def writer(self, client: reverb.Client, environments: int) -> PackedWriter:
        """See ReplayLayout."""
        transitions = NStepTransitions(self._n_step, self._gamma, environments)
        return PackedWriter(client, self.table, self.format, transitions)

    def elements(
        self, items: tf.data.Dataset, batch_size: int, batch_size_per_replica: int
    ) -> tf.data.Dataset:
        """See ReplayLayout.

        `batch_size` items are dealt out over ROWS_PER_ITEM batches, one row of each item to each batch. So
        a batch is what drawing single transitions independently and uniformly would give, at
        1/ROWS_PER_ITEM of the cost; only the batches dealt from the same items depend on each other.
        """

        def dealt(item: Any) -> dict[str, tf.Tensor]:
            return self._deal(item.data, batch_size, batch_size_per_replica)

        return items.batch(batch_size, drop_remainder=True).map(dealt).unbatch().map(self.unpack)

    def _deal(self, blocks: dict[str, tf.Tensor], count: int, per_replica: int) -> dict[str, tf.Tensor]:
        """Deals out [count, 1, ROWS_PER_ITEM, width] as [batches * replicas, per_replica, width]."""
        widths = self.format.widths
        rows = {
            dtype: tf.reshape(block, (count * ROWS_PER_ITEM, widths[dtype]))
            for dtype, block in blocks.items()
        }
        order = tf.reshape(self._order(rows, count), (-1, per_replica))
        return {dtype: tf.gather(block, order) for dtype, block in rows.items()}

    def _order(self, rows: dict[str, tf.Tensor], count: int) -> tf.Tensor:
        """Which row goes where: int32 [ROWS_PER_ITEM, count], a batch in each line."""
        # Each item begins at a random one of its rows and goes round.
        begin = tf.random.uniform([count], maxval=ROWS_PER_ITEM, dtype=tf.int32)
        turn = (begin + tf.range(ROWS_PER_ITEM)[:, None]) % ROWS_PER_ITEM
        order = turn + ROWS_PER_ITEM * tf.range(count)
        # An item that was not full has nothing for some of the batches. Rows of others take its place there,
        # so that no transition is any likelier than another.
        used = tf.where(self.format.is_used(rows))[:, 0]
        others = tf.random.uniform([ROWS_PER_ITEM, count], maxval=tf.size(used), dtype=tf.int32)
        is_used = tf.gather(self.format.is_used(rows), order)
        return tf.where(is_used, order, tf.cast(tf.gather(used, others), tf.int32))

    def unpack(self, rows: dict[str, tf.Tensor]) -> tuple[trajectory.Transition, tf.Tensor]:
        """Unpacks rows ([batch, width] tensors) in the graph into an element of `elements`."""
        stored = self.format.unpack(rows)
        return as_transition(stored), stored.policy_train_step
