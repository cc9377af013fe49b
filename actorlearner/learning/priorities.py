"""Prioritised replay: the importance weights of sampled units, and the updates of their priorities."""

import logging
import queue
import threading

import numpy as np
import numpy.typing as npt
import reverb
import tensorflow as tf

from actorlearner.agents.experience import Priorities
from actorlearner.replay.packed import SampleInfo
from actorlearner.replay.reverb_calls import UNREACHABLE

_log = logging.getLogger(__name__)

MIN_PRIORITY = 1e-3
"""The smallest priority: a unit whose error is 0 must still be sampled occasionally."""

_PENDING_CALLS = 4
_SCALE_DECAY = 0.999
"""The largest recent error fades by this factor with each call of the training graph."""


def importance_weights(sample_info: SampleInfo, priorities: Priorities) -> tf.Tensor:
    """Returns the weights of the units of a replica's batch, see `Priorities`: float32 [batch], at most 1.

    They are divided by the largest weight over the batches of all replicas.
    """
    expected = tf.cast(sample_info.table_size, tf.float64) * sample_info.probability
    weights = tf.pow(expected, -priorities.importance_exponent)
    largest = tf.reduce_max(weights)
    replicas = tf.distribute.get_replica_context()
    if replicas is not None and replicas.num_replicas_in_sync > 1:
        largest = tf.reduce_max(replicas.all_gather(largest[None], axis=0))
    return tf.cast(weights / largest, tf.float32)


class PriorityWriter:
    """Writes priorities to one replay server, on a thread of its own.

    Units of other servers, and units that were removed meanwhile, are skipped. If the server is slower than
    training, or does not answer, updates are dropped: their units keep their priorities until they are drawn
    again.
    """

    def __init__(self, client: reverb.Client, table: str) -> None:
        """Starts the thread; it ends with the process."""
        self._client = client
        self._table = table
        self._largest = 0.0
        self._calls: queue.Queue[tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]]
        self._calls = queue.Queue(_PENDING_CALLS)
        threading.Thread(target=self._write_all, name="priorities", daemon=True).start()

    def __call__(self, keys: npt.NDArray[np.uint64], errors: npt.NDArray[np.float32]) -> None:
        """Queues the errors of sampled units for the thread; does not block."""
        try:
            self._calls.put_nowait((keys, errors))
        except queue.Full:
            _log.debug("priorities of %d units are dropped", len(keys))

    def priorities(self, errors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Returns the priorities: absolute errors, divided by the largest recent one."""
        sizes = np.abs(errors)
        self._largest = max(
            float(sizes.max()), _SCALE_DECAY * self._largest, float(np.finfo(np.float32).tiny)
        )
        return np.clip(sizes / self._largest, MIN_PRIORITY, 1.0)

    def _write_all(self) -> None:
        while True:
            keys, errors = self._calls.get()
            # Of a unit that was sampled twice, the later error counts.
            updates = dict(zip(keys.tolist(), self.priorities(errors).tolist(), strict=True))
            try:
                self._client.mutate_priorities(self._table, updates=updates)
            except UNREACHABLE:
                _log.debug("%d priorities are not written: the replay server has ended", len(updates))
