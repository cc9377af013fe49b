"""Counts how often each role of a run was started, in a table of the replay server.

A restarted role must draw other random numbers than before. Its run directory cannot count the starts: in a
container it may be new each time. The table is part of the replay server's checkpoints, so a resumed run
continues the counts.
"""

import math
from typing import Any

import numpy as np
import reverb
import tensorflow as tf

from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until
from actorlearner.replay.connection import CONNECT_DEADLINE_S
from actorlearner.replay.reverb_calls import UNREACHABLE, within

_TABLE = "lives"
_MOST_ROLES = 100_000
_STATUS_TIMEOUT_S = 5
_CALL_TIMEOUT_S = 30.0
_SURE = 20.0
"""The probability that the draws miss an item is at most exp(-_SURE)."""


def starts_table() -> reverb.Table:
    """Returns the table: one item for each started role, with its name and its number of earlier starts."""
    return reverb.Table(
        name=_TABLE,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=_MOST_ROLES,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature={"role": tf.TensorSpec([None], tf.uint8), "life": tf.TensorSpec([], tf.int64)},
    )


def count_start(client: reverb.Client, role: str, stop: Stop) -> int:
    """Registers a start of a role; blocks until the replay server answers, up to CONNECT_DEADLINE_S.

    Args:
      client: a client of the replay server.
      role: the role's name, with its index where there are several.
      stop: ends the wait.

    Returns:
      The number of earlier starts of the role in this run; 0 at a stop.

    Raises:
      RunError: the server does not answer in time.
    """
    lives = [0]

    def registered() -> bool:
        try:
            size = int(client.server_info(timeout=_STATUS_TIMEOUT_S)[_TABLE].current_size)
            lives[0] = within(_CALL_TIMEOUT_S, lambda: _register(client, role, size))
        except UNREACHABLE:
            return False
        return True

    wait_until("the replay server to count this start", registered, stop, deadline_s=CONNECT_DEADLINE_S)
    return lives[0]


def _register(client: reverb.Client, role: str, size: int) -> int:
    """Replaces the role's item by one with the next count, and returns this count."""
    name = np.frombuffer(role.encode(), np.uint8)
    earlier = {key: life for key, (found, life) in _items(client, size).items() if found == role}
    life = 1 + max(earlier.values(), default=-1)
    client.insert({"role": name, "life": np.int64(life)}, {_TABLE: 1.0})
    client.mutate_priorities(_TABLE, deletes=list(earlier))
    return life


def _items(client: reverb.Client, size: int) -> dict[int, tuple[str, int]]:
    """Returns role and count of each item, by its key.

    Reverb cannot list items. That many random draws contain each of them (coupon collector).
    """
    if size == 0:
        return {}
    draws = math.ceil(size * (math.log(size) + _SURE))
    samples = client.sample(_TABLE, draws, emit_timesteps=False, unpack_as_table_signature=True)
    return {int(np.ravel(sample.info.key)[0]): _read(sample.data) for sample in samples}


def _read(data: dict[str, Any]) -> tuple[str, int]:
    return np.ravel(data["role"]).tobytes().decode(), int(np.ravel(data["life"])[0])
