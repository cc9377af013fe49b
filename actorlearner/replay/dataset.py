"""The learner's side of replay: a dataset of training batches."""

from typing import Any

import reverb
import tensorflow as tf

from actorlearner.replay.layout import TransitionLayout
from actorlearner.replay.rate_limit import ROWS_PER_ITEM
from actorlearner.replay.tables import EXPERIENCE_TABLE

_PREFETCHED_BATCHES = 2
"""Batches kept ready. Each is already counted as sampled, so more would only make the data older."""


def experience_dataset(
    address: str, layout: TransitionLayout, batch_size: int, batch_size_per_replica: int
) -> tf.data.Dataset:
    """Samples batches of transitions from the experience table of the server at `address`.

    `batch_size` items are fetched at a time, ROWS_PER_ITEM batches' worth of rows. They are shuffled in
    one operation and cut into batches, so that the rows of one item are spread over the batches: each
    batch holds rows of nearly `batch_size` different items at 1/ROWS_PER_ITEM of the cost.

    Args:
      address: HOST:PORT.
      layout: how the rows are packed.
      batch_size: transitions in one train step, over all replicas.
      batch_size_per_replica: transitions in one element.

    Returns:
      An endless dataset of (Transition [batch_size_per_replica, ...], policy_train_step int64
      [batch_size_per_replica]). Its iterator blocks while the rate limiter bars sampling or the server
      is away, without a deadline.
    """
    signature = layout.signature
    dataset = reverb.TrajectoryDataset(
        server_address=address,
        table=EXPERIENCE_TABLE,
        dtypes={dtype: spec.dtype for dtype, spec in signature.items()},
        shapes={dtype: spec.shape for dtype, spec in signature.items()},
        max_in_flight_samples_per_worker=batch_size,
        num_workers_per_iterator=1,
        max_samples_per_stream=-1,
    )

    def shuffled(sample: Any) -> dict[str, tf.Tensor]:
        order = tf.random.shuffle(tf.range(batch_size * ROWS_PER_ITEM))
        batches = batch_size * ROWS_PER_ITEM // batch_size_per_replica
        cut = {}
        for dtype, rows in sample.data.items():
            width = signature[dtype].shape[-1]
            mixed = tf.gather(tf.reshape(rows, (batch_size * ROWS_PER_ITEM, width)), order)
            cut[dtype] = tf.reshape(mixed, (batches, batch_size_per_replica, width))
        return cut

    dataset = dataset.batch(batch_size, drop_remainder=True).map(shuffled).unbatch()
    dataset = dataset.map(layout.unpack).prefetch(_PREFETCHED_BATCHES)
    options = tf.data.Options()
    # Elements are batches already; sharding or rebatching by the strategy would only copy them.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)
