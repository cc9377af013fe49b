"""TensorBoard's curves, on a disk that may be full.

Their step is the train step in every role: of the learner, or of the policy that acts or is evaluated.

TensorFlow's own writer cannot be used after a full disk: what it writes then comes after half a record, where
no reader gets to. And in a graph its error ends a train step midway. It therefore writes to memory, which
is appended to the event file here.
"""

import itertools
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from actorlearner.records.disk import Appender

_numbers = itertools.count()


class Summaries:
    """The curves of a role.

    Attributes:
      writer: TensorFlow's, for `as_default`, also in graphs; only `flush` brings what it writes to the disk.
    """

    def __init__(self, directory: Path) -> None:
        """Begins an event file in `directory`."""
        self._memory = f"ram://summaries-{os.getpid()}-{next(_numbers)}"
        self.writer = tf.summary.create_file_writer(self._memory)
        (name,) = tf.io.gfile.listdir(self._memory)
        self._file = Appender(directory / name, "summaries")
        self._head = self._take()
        self._file.append(self._head)

    def scalars(self, values: Mapping[str, float | None], step: int) -> None:
        """Writes a point of each curve that has a value.

        Args:
          values: by the names of the curves.
          step: of all of them, in what the role counts.
        """
        # As NumPy's numbers: of Python's, TensorFlow keeps a tensor of each that it has ever met.
        with self.writer.as_default(step=np.int64(step)):
            for name, value in values.items():
                if value is not None:
                    tf.summary.scalar(name, np.float32(value))

    def flush(self) -> bool:
        """Appends what was written since the last call to the event file.

        Returns:
          Whether everything so far is in it; what is not, because the disk is full, follows later.
        """
        events = self._take()[len(self._head) :]  # Each file that TensorFlow begins has the same head.
        return self._file.append(events) if events else self._file.flush()

    def _take(self) -> bytes:
        """What TensorFlow has written, which is removed: graphs that hold the writer notice nothing."""
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
