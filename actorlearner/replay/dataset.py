"""The learner's side of replay: a dataset of training batches."""

from collections.abc import Sequence

import reverb
import tensorflow as tf
import tree

from actorlearner.replay.layout import ReplayLayout

_PREFETCHED_BATCHES = 2
"""Batches to prefetch. Reverb counts them as sampled, and they age while they wait, so there are few."""

_WORKERS = 2
"""Streams from a single server: with the trajectory layout one stream leaves a core idle. With several
servers, one stream for each is enough."""


def experience_dataset(
    addresses: Sequence[str], layout: ReplayLayout, batch_size: int, batch_size_per_replica: int
) -> tf.data.Dataset:
    """Samples batches of experience from the experience tables of the servers at `addresses`.

    Batches take items from the servers in turn. A server that does not answer, whose rate limiter blocks, or
    that is slower than the learner is skipped, and does not catch up later.

    Args:
      addresses: HOST:PORT of each server.
      layout: the layout of the servers' items.
      batch_size: units in one train step of this learner, over its replicas.
      batch_size_per_replica: units in one element.

    Returns:
      An endless dataset of (batch for the layout's `decode`, packed.SampleInfo or ()). Its iterator blocks,
      without a deadline, while no server answers or each one's rate limiter blocks sampling.
    """
    batches = layout.batches(
        experience_items(addresses, layout, batch_size), batch_size, batch_size_per_replica
    )
    # Declared endless: otherwise each train step begins with a collective in which the learners of a group
    # agree that there is a batch. The prefetch comes last, or tf.data would add a larger one.
    endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    dataset = batches.apply(endless).prefetch(_PREFETCHED_BATCHES)
    options = tf.data.Options()
    # Elements are batches already; sharding or rebatching by the strategy would only copy them.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)


def experience_items(addresses: Sequence[str], layout: ReplayLayout, batch_size: int) -> tf.data.Dataset:
    """Returns a dataset of the items of all servers, with as many in flight as the next batch needs."""
    servers = len(addresses)
    if servers == 1:
        in_order = layout.experience.iteration is not None
        return _items_of(addresses[0], layout, batch_size, 1 if in_order else _WORKERS)
    # Not deterministic: a fixed order would wait for a server that does not answer. The interleave prefetches
    # up to three items of each server, few compared with those in flight; Reverb counts them as sampled.
    return tf.data.Dataset.from_tensor_slices(list(addresses)).interleave(
        lambda address: _items_of(address, layout, batch_size // servers, workers=1),
        cycle_length=servers,
        num_parallel_calls=servers,
        deterministic=False,
    )


def _items_of(address: str | tf.Tensor, layout: ReplayLayout, count: int, workers: int) -> tf.data.Dataset:
    """Returns a dataset of the items of one server, `count` of them in flight."""
    return reverb.TrajectoryDataset(
        server_address=address,
        table=layout.table,
        dtypes=tree.map_structure(lambda spec: spec.dtype, layout.item_specs),
        shapes=tree.map_structure(lambda spec: spec.shape, layout.item_specs),
        max_in_flight_samples_per_worker=max(1, count // workers),
        num_workers_per_iterator=workers,
        max_samples_per_stream=-1,
    )
