"""The identity of a replay server: the run that it serves, and the run's configuration.

Each server has an identity table, whose item is the run's configuration. The run id is part of the table's
name, so every `server_info` returns it without waiting for an item.
"""

from collections.abc import Iterable

import numpy as np
import reverb
import tensorflow as tf

from actorlearner.config.resolved import canonical
from actorlearner.config.schema import Config
from actorlearner.errors import RunError
from actorlearner.replay.reverb_calls import sample_one

_PREFIX = "run-"
_CONFIGURATION = "configuration"
_READ_TIMEOUT_S = 30.0


def identity_table(run_id: str) -> reverb.Table:
    """Returns the table of a server of this run; it holds one item after `announce`."""
    return reverb.Table(
        name=_PREFIX + run_id,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature={_CONFIGURATION: tf.TensorSpec([None], tf.uint8)},
    )


def announce(client: reverb.Client, run_id: str, config: Config) -> None:
    """Writes the configuration into the identity table; blocks without a deadline until the server has it."""
    text = np.frombuffer(canonical(config).encode(), np.uint8)
    client.insert({_CONFIGURATION: text}, {_PREFIX + run_id: 1.0})


def run_id_of(tables: Iterable[str]) -> str | None:
    """Returns the run id from the names of a server's tables; None if it is not a run's replay server."""
    return next((name.removeprefix(_PREFIX) for name in tables if name.startswith(_PREFIX)), None)


def check_same_run(tables: Iterable[str], run_id: str | None, address: str = "") -> None:
    """Raises a RunError if a server with these tables serves another run; a `run_id` of None accepts any.

    The message names the server's `address`, if it is given.
    """
    there = run_id_of(tables)
    if run_id is not None and there != run_id:
        server = f"the replay server {address}".rstrip()
        other = "no run" if there is None else f"run {there}"
        raise RunError(f"{server} has been replaced by one of {other}; it served run {run_id}")


def configuration_of(client: reverb.Client, run_id: str) -> str:
    """Returns the canonical text of the configuration that this run's server was started with.

    Raises:
      NoAnswerError: the server has not answered within _READ_TIMEOUT_S.
    """
    text: bytes = sample_one(client, _PREFIX + run_id, _READ_TIMEOUT_S).data[_CONFIGURATION].tobytes()
    return text.decode()
