"""The learner's side of replay: a dataset of training batches."""

import reverb
import tensorflow as tf
import tree

from actorlearner.replay.layout import ReplayLayout

_PREFETCHED_BATCHES = 2
"""Batches kept ready. Each is already counted as sampled, so more would only make the data older."""

_WORKERS = 2
"""Streams from the server. A single one of the trajectory layout cannot use what two cores leave it."""


def experience_dataset(
    address: str, layout: ReplayLayout, batch_size: int, batch_size_per_replica: int
) -> tf.data.Dataset:
    """Samples batches of transitions from the experience table of the server at `address`.

    Args:
      address: HOST:PORT.
      layout: how transitions lie in items.
      batch_size: transitions in one train step, over all replicas.
      batch_size_per_replica: transitions in one element.

    Returns:
      An endless dataset of (batch, ()), the form that TF-Agents' Learner takes, with batches for the
      layout's `decode`. Its iterator blocks while the rate limiter bars sampling or the server is away,
      without a deadline.
    """
    items = reverb.TrajectoryDataset(
        server_address=address,
        table=layout.table,
        dtypes=tree.map_structure(lambda spec: spec.dtype, layout.item_specs),
        shapes=tree.map_structure(lambda spec: spec.shape, layout.item_specs),
        # Together as many items on their way as the next element needs.
        max_in_flight_samples_per_worker=max(1, batch_size // _WORKERS),
        num_workers_per_iterator=_WORKERS,
        max_samples_per_stream=-1,
    )
    batches = layout.batches(items, batch_size, batch_size_per_replica)
    dataset = batches.map(lambda batch: (batch, ())).prefetch(_PREFETCHED_BATCHES)
    options = tf.data.Options()
    # Elements are batches already; sharding or rebatching by the strategy would only copy them.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)
