"""TensorBoard summaries that survive a full disk.

In every role their step is a train step: the learner's, or the acting or evaluated policy's.

TensorFlow's own writer is unusable after a full disk: it appends to a partial record, where readers stop, and
in a graph its error interrupts a train step. It therefore writes to memory here, and `flush` appends that to
the event file.
"""

import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from actorlearner.config.problems import show
from actorlearner.config.resolved import declared_values
from actorlearner.config.schema import Config
from actorlearner.records.disk import Appender

_numbers = itertools.count()


class Summaries:
    """The TensorBoard curves of a role.

    Attributes:
      writer: TensorFlow's summary writer, for `as_default`, also in graphs; `flush` writes its data to disk.
    """

    def __init__(self, directory: Path) -> None:
        """Starts an event file in `directory`."""
        self._memory = f"ram://summaries-{os.getpid()}-{next(_numbers)}"
        self.writer = tf.summary.create_file_writer(self._memory)
        (name,) = tf.io.gfile.listdir(self._memory)
        self._file = Appender(directory / name, "summaries")
        self._head = self._take()
        self._file.append(self._head)

    def scalars(self, values: Mapping[str, float | None], step: int) -> None:
        """Writes a point of each curve that has a value.

        Args:
          values: by name of the curve; None has no point.
          step: train step of the points.
        """
        # NumPy scalars, because TensorFlow caches a tensor for every Python number.
        with self.writer.as_default(step=np.int64(step)):
            for name, value in values.items():
                if value is not None:
                    tf.summary.scalar(name, np.float32(value))

    def flush(self) -> bool:
        """Appends the data since the last call to the event file; returns whether all is in it.

        While the disk is full, data stays in memory and is written later.
        """
        events = self._take()[len(self._head) :]  # Every new file of TensorFlow starts with the same header.
        return self._file.append(events) if events else self._file.flush()

    def _take(self) -> bytes:
        """Returns and clears what TensorFlow has written. Graphs that use the writer are not affected."""
        self.writer.flush()
        tf.raw_ops.CloseSummaryWriter(writer=self.writer._resource)
        (name,) = tf.io.gfile.listdir(self._memory)
        file = f"{self._memory}/{name}"
        with tf.io.gfile.GFile(file, "rb") as memory:
            events: bytes = memory.read()
        tf.io.gfile.remove(file)
        tf.raw_ops.CreateSummaryFileWriter(
            writer=self.writer._resource,
            logdir=self._memory,
            max_queue=10,
            flush_millis=120_000,
            filename_suffix=".v2",
        )
        return events


METRICS = ("eval/AverageReturn", "eval/AverageEpisodeLength")
"""The curves that the plugin shows as results."""


def write_hyperparameters(summaries: Summaries, config: Config) -> None:
    """Writes all keys and values; the plugin expects the curves METRICS in the same summaries."""
    values = {key: _plain(value) for key, value in declared_values(config).items()}
    with summaries.writer.as_default(step=0):
        hparams.hparams_config(
            hparams=[hparams.HParam(key) for key in values],
            metrics=[hparams.Metric(name) for name in METRICS],
        )
        hparams.hparams(values)


def _plain(value: Any) -> bool | int | float | str:
    """Returns a value of a type that the plugin supports; other values as JSON."""
    return value if isinstance(value, (bool, int, float, str)) else show(value)
