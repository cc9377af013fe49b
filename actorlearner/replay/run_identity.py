"""The run that a replay server serves: its run id and its configuration, in a table of their own.

The id is part of the table's name, so every `server_info` returns it without waiting for an item.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import reverb
import tensorflow as tf

from actorlearner.config.resolved import canonical, differences
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.reverb_calls import within

_PREFIX = "run-"
_CONFIGURATION = "configuration"
_TRAIN_STEPS = "learn.train_steps"
_READ_TIMEOUT_S = 30.0


class LengthError(ConfigurationError):
    """The configurations of a role and of its server differ in `learn.train_steps` alone.

    This happens while a run is resumed with more train steps: the server restores the old configuration with
    everything else, answers, and then announces the new one.
    """


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
    """Writes the configuration into the identity table; blocks until the server has it."""
    text = np.frombuffer(canonical(config).encode(), np.uint8)
    client.insert({_CONFIGURATION: text}, {_PREFIX + run_id: 1.0})


def check_same_run(tables: Iterable[str], run_id: str | None, address: str = "") -> None:
    """Checks that the server at an address still serves this run.

    Args:
      tables: the names of the server's tables.
      run_id: the expected run id; None accepts any.
      address: HOST:PORT, for all servers but the first one, which decides the role's run.

    Raises:
      RunError: it serves another run.
    """
    if run_id is not None and _PREFIX + run_id not in tables:
        there = _name(run_id_of(tables))
        raise RunError(
            f"the replay server {address} has been replaced by one of {there}; it was of run {run_id}"
            if address
            else f"the replay server has been replaced by one of {there}; this role belongs to run {run_id}"
        )


def join(
    client: reverb.Client,
    address: str,
    place: int,
    others: Mapping[str, str],
    tables: Iterable[str],
    directory: RunDirectory,
    config: Config,
) -> str:
    """Records the server's run id in `directory` if it has none, and checks that both agree.

    Each of several servers has a run id of its own; the first one's is that of the run.

    Args:
      client: a client of the server.
      address: its HOST:PORT, for messages.
      place: its index in `--replay_address`.
      others: the run ids of the servers that were joined before, by address.
      tables: the names of its tables.
      directory: the role's run directory.
      config: the role's configuration.

    Returns:
      The server's run id.

    Raises:
      LengthError: the server serves another `learn.train_steps`, perhaps only for a moment.
      ConfigurationError: the server serves another run or another configuration, or it is one of
        `others`.
      reverb_calls.NoAnswerError: the server no longer answers.
    """
    here, there = directory.server_run_ids().get(place), run_id_of(tables)
    if there is None:
        problem = f"--replay_address: {address} is a Reverb server, but not a replay server of a run"
        raise ConfigurationError([problem])
    if same := [other for other, run_id in others.items() if run_id == there]:
        problem = f"--replay_address: {same[0]} and {address} both serve run {there}"
        raise ConfigurationError(
            [f"{problem}; allowed: servers with a run directory of their own, once each"]
        )
    if here is not None and here != there:
        whose = "belongs to" if place == 0 else f"has replay server {place + 1} in"
        problem = f"--run_dir: {directory.path} {whose} run {here}, but {address} serves run {there}"
        raise ConfigurationError([f"{problem}; allowed: a new directory, or the replay server of that run"])
    if lines := differences(canonical(config), configuration_of(client, there)):
        problem = f"--config: {address} serves run {there} with another configuration"
        other = [f"{problem}: {line}" for line in lines]
        raise LengthError(other) if _only_length(lines) else ConfigurationError(other)
    if here is None:
        directory.remember_server(place, there)
    return there


def configuration_of(client: reverb.Client, run_id: str) -> str:
    """Returns the canonical text of the configuration that this run's server was started with.

    Raises:
      NoAnswerError: the server has not answered within _READ_TIMEOUT_S.
    """

    def read() -> bytes:
        samples = client.sample(_PREFIX + run_id, 1, emit_timesteps=False, unpack_as_table_signature=True)
        data: bytes = next(iter(samples)).data[_CONFIGURATION].tobytes()
        return data

    return within(_READ_TIMEOUT_S, read).decode()


def run_id_of(tables: Iterable[str]) -> str | None:
    """Returns the run id of a server with these tables; None if it is no replay server of a run."""
    return next((name.removeprefix(_PREFIX) for name in tables if name.startswith(_PREFIX)), None)


def _only_length(differences: Iterable[str]) -> bool:
    return all(line.startswith(f"{_TRAIN_STEPS}:") for line in differences)


def _name(run_id: str | None) -> str:
    return "no run" if run_id is None else f"run {run_id}"
