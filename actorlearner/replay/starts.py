"""Counts how often each role of a run was started, in a table of the replay server.

A restarted role must draw other random numbers than before. Its run directory cannot count the starts: in a
container it may be new each time. The table is part of the replay server's checkpoints, so a resumed run
continues the counts.
"""

import math

import numpy as np
import reverb
import tensorflow as tf

from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until
from actorlearner.replay.connection import CONNECT_DEADLINE_S
from actorlearner.replay.reverb_calls import UNREACHABLE, within

_TABLE = "lives"
_MAX_ROLES = 100_000
_STATUS_TIMEOUT_S = 5
_CALL_TIMEOUT_S = 30.0
_CERTAINTY = 20.0
"""The probability that the draws miss an item is at most exp(-_CERTAINTY)."""


def starts_table() -> reverb.Table:
    """Returns the table: one item for each started role, with its name and its number of earlier starts."""
    return reverb.Table(
        name=_TABLE,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=_MAX_ROLES,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature={"role": tf.TensorSpec([None], tf.uint8), "life": tf.TensorSpec([], tf.int64)},
    )


def count_start(client: reverb.Client, role: str, stop: Stop) -> int:
    """Registers a start of a role and returns the number of its earlier starts in this run; 0 at a stop.

    Blocks until the replay server answers, up to CONNECT_DEADLINE_S.

    Args:
      client: a client of the replay server.
      role: the role's name, with its index where there are several.
      stop: ends the wait.

    Raises:
      RunError: the server does not answer in time.
    """
    earlier = 0

    def registered() -> bool:
        nonlocal earlier
        try:
            size = int(client.server_info(timeout=_STATUS_TIMEOUT_S)[_TABLE].current_size)
            earlier = within(_CALL_TIMEOUT_S, lambda: _register(client, role, size))
        except UNREACHABLE:
            return False
        return True

    wait_until("the replay server to count this start", registered, stop, deadline_s=CONNECT_DEADLINE_S)
    return earlier


def _register(client: reverb.Client, role: str, size: int) -> int:
    """Replaces the role's item by one with the next count, and returns this count."""
    name = np.frombuffer(role.encode(), np.uint8)
    replaced: dict[int, int] = {}
    if size > 0:
        # Reverb cannot list items. That many random draws contain each of them (coupon collector).
        draws = math.ceil(size * (math.log(size) + _CERTAINTY))
        for sample in client.sample(_TABLE, draws, emit_timesteps=False, unpack_as_table_signature=True):
            if np.array_equal(np.ravel(sample.data["role"]), name):
                replaced[int(np.ravel(sample.info.key)[0])] = int(np.ravel(sample.data["life"])[0])
    life = 1 + max(replaced.values(), default=-1)
    client.insert({"role": name, "life": np.int64(life)}, {_TABLE: 1.0})
    client.mutate_priorities(_TABLE, deletes=list(replaced))
    return life
