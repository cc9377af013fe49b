"""Which run a replay server serves: its run id and its configuration, in a table beside the variables.

The id is part of the table's name, so that every look at the server tells it, without a wait for an item.
"""

from collections.abc import Iterable

import numpy as np
import reverb
import tensorflow as tf

from actorlearner.config.resolved import canonical, differences
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.reverb_calls import within
from actorlearner.run_directory import RunDirectory

_PREFIX = "run-"
_CONFIGURATION = "configuration"
_READ_TIMEOUT_S = 30.0


def identity_table(run_id: str) -> reverb.Table:
    """The table of a server of this run; it holds one item once it is `announce`d."""
    return reverb.Table(
        name=_PREFIX + run_id,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature={_CONFIGURATION: tf.TensorSpec([None], tf.uint8)},
    )


def announce(client: reverb.Client, run_id: str, config: Config) -> None:
    """Puts the configuration into the identity table; blocks until the server has taken it."""
    text = np.frombuffer(canonical(config).encode(), np.uint8)
    client.insert({_CONFIGURATION: text}, {_PREFIX + run_id: 1.0})


def check_same_run(tables: Iterable[str], run_id: str | None) -> None:
    """Checks that a server that answers again, at the same address, is still one of this run.

    Args:
      tables: the names of all its tables.
      run_id: of this run; None accepts any.

    Raises:
      RunError: it serves another run.
    """
    if run_id is not None and _PREFIX + run_id not in tables:
        raise RunError(
            f"the replay server has been replaced by one of {_name(_run_id(tables))}; this role belongs to "
            f"run {run_id}"
        )


def join(
    client: reverb.Client, address: str, tables: Iterable[str], directory: RunDirectory, config: Config
) -> None:
    """Makes the server's run that of `directory`, unless it has one, and checks that both are the same.

    Args:
      client: of the server.
      address: its HOST:PORT, for messages.
      tables: the names of all its tables.
      directory: the role's own.
      config: the role's own.

    Raises:
      ConfigurationError: the server serves another run or another configuration.
      reverb_calls.NoAnswerError: the server does not answer any more.
    """
    here, there = directory.run_id, _run_id(tables)
    if there is None:
        problem = f"--replay_address: {address} is a Reverb server, but not a replay server of a run"
        raise ConfigurationError([problem])
    if here is not None and here != there:
        problem = f"--run_dir: {directory.path} belongs to run {here}, but {address} serves run {there}"
        raise ConfigurationError([f"{problem}; allowed: a new directory, or the replay server of that run"])
    if lines := differences(canonical(config), _configuration(client, there)):
        problem = f"--config: {address} serves run {there} with another configuration"
        raise ConfigurationError([f"{problem}: {line}" for line in lines])
    if here is None:
        directory.run_id = there


def _configuration(client: reverb.Client, run_id: str) -> str:
    def read() -> bytes:
        samples = client.sample(_PREFIX + run_id, 1, emit_timesteps=False, unpack_as_table_signature=True)
        data: bytes = next(iter(samples)).data[_CONFIGURATION].tobytes()
        return data

    return within(_READ_TIMEOUT_S, read).decode()


def _run_id(tables: Iterable[str]) -> str | None:
    return next((name.removeprefix(_PREFIX) for name in tables if name.startswith(_PREFIX)), None)


def _name(run_id: str | None) -> str:
    return "no run" if run_id is None else f"run {run_id}"
