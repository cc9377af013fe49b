"""Reads every transition out of a checkpoint of the replay server."""

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
import tree
from reverb.cc import schema_pb2
from reverb.cc.checkpointing import checkpoint_pb2

from actorlearner.agents.experience import Stored, StoredTransition
from actorlearner.errors import RunError
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.packed import PackedLayout
from actorlearner.replay.reverb_calls import within
from actorlearner.replay.rows import ROWS

_TABLES, _ITEMS = "tables.tfrecord", "items.tfrecord"
_COMPRESSION = "ZLIB"
_STATUS_TIMEOUT_S = 30
_READ_TIMEOUT_S = 300.0
_ITEMS_AT_ONCE = 1_000


def read_items(checkpoint: Path, layout: ReplayLayout, port: int) -> list[StoredTransition]:
    """Reads the items of the experience table, each once: NumPy arrays with one element a transition.

    A replay server of this process reads the checkpoint for a moment, from a copy in which each item may be
    sampled once and the rate limiter blocks nothing.

    Args:
      checkpoint: the directory that Reverb wrote.
      layout: of the experience table.
      port: a free TCP port.

    Returns:
      An element for each thousand items or less.

    Raises:
      RunError: not every item could be read.
      reverb_calls.NoAnswerError: that took longer than five minutes.
    """
    with tempfile.TemporaryDirectory(prefix="actorlearner-") as temporary:
        tables = _unlimited_copy(checkpoint, Path(temporary) / checkpoint.name)
        checkpointer = reverb.platform.checkpointers_lib.DefaultCheckpointer(path=temporary)
        server = reverb.Server([_table(table) for table in tables], port, checkpointer)
        try:
            client = server.localhost_client()
            size = client.server_info(timeout=_STATUS_TIMEOUT_S)[layout.table].current_size
            items = within(_READ_TIMEOUT_S, lambda: _sample(client, layout.table, size))
        finally:
            server.stop()
    return [
        _decoded(items[start : start + _ITEMS_AT_ONCE], layout) for start in range(0, size, _ITEMS_AT_ONCE)
    ]


def _unlimited_copy(checkpoint: Path, copy: Path) -> Sequence[Any]:
    """Copies a checkpoint without its limits; returns the descriptions of its tables."""
    shutil.copytree(checkpoint, copy)
    tables = _read(copy / _TABLES, checkpoint_pb2.PriorityTableCheckpoint)
    for table in tables:
        table.max_times_sampled = 1
        table.rate_limiter.min_size_to_sample = 1
        table.rate_limiter.min_diff = -np.finfo(np.float64).max
        table.rate_limiter.max_diff = np.finfo(np.float64).max
    items = _read(copy / _ITEMS, schema_pb2.PrioritizedItem)
    for item in items:
        item.times_sampled = 0
    _write(copy / _TABLES, tables)
    _write(copy / _ITEMS, items)
    return tables


def _read(path: Path, message: Any) -> list[Any]:
    records = tf.data.TFRecordDataset(str(path), compression_type=_COMPRESSION)
    return [message.FromString(record.numpy()) for record in records]


def _write(path: Path, messages: Sequence[Any]) -> None:
    with tf.io.TFRecordWriter(str(path), _COMPRESSION) as writer:
        for message in messages:
            writer.write(message.SerializeToString())


def _table(description: Any) -> reverb.Table:
    """Returns a table for Reverb to restore: all but the name comes from the checkpoint."""
    return reverb.Table(
        name=description.table_name,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=description.max_size,
        rate_limiter=reverb.rate_limiters.MinSize(1),
    )


def _sample(client: reverb.Client, table: str, size: int) -> list[Any]:
    if not size:
        return []  # Reverb refuses to sample nothing.
    samples: Iterable[Any] = client.sample(table, size, emit_timesteps=False, unpack_as_table_signature=True)
    items = {int(np.ravel(sample.info.key)[0]): sample.data for sample in samples}
    if len(items) != size:
        raise RunError(f"only {len(items)} of {size} items of the last checkpoint of replay could be read")
    return list(items.values())


def _decoded(items: Sequence[Any], layout: ReplayLayout) -> StoredTransition:
    batch = tree.map_structure(lambda *leaves: tf.constant(np.stack(leaves)), *items)
    decoded: StoredTransition = tree.map_structure(np.asarray, decode_items(batch, layout))
    return decoded


def decode_items(items: Any, layout: ReplayLayout) -> Stored:
    """Decodes complete items (tensors [items, ...]) into their units, in no particular order."""
    if isinstance(layout, PackedLayout):
        rows = tf.reshape(items[ROWS], (-1, layout.format.width))
        items = tf.boolean_mask(rows, layout.format.is_used(rows))
    return layout.decode(items)
