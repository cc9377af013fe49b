"""Connects a role to its replay servers, and checks that they serve its run."""

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence

import reverb
import tree
from reverb import reverb_types

from actorlearner.config.resolved import canonical, differences
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.identity import check_same_run, configuration_of, run_id_of
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import ReplayStatus, status_of

CONNECT_DEADLINE_S = 900.0
"""How long a role waits for a replay server.

Roles may be started in any order, on any machine, and a server that restores 100 GB takes minutes.
"""

_PROBE_TIMEOUT_S = 2
_ANNOUNCE_S = 5.0
"""Seconds that a role waits if the server's configuration differs only in `learn.train_steps`.

A resumed run may have raised that key. A restored server has the saved configuration until `announce`.
"""


@dataclasses.dataclass(frozen=True)
class ReplayServer:
    """A replay server that a role is connected to.

    Attributes:
      client: a Reverb client of the server.
      layout: the layout of its experience table.
      run_id: the id of the run that it must serve; None accepts any.
    """

    client: reverb.Client
    layout: ReplayLayout
    run_id: str | None = None

    @property
    def address(self) -> str:
        """HOST:PORT of the server."""
        return str(self.client.server_address)

    def status(self, timeout_s: int) -> ReplayStatus:
        """Polls the server; blocks for `timeout_s` at most.

        Raises:
          reverb_calls.UNREACHABLE: it does not answer.
          RunError: a server of another run has replaced it.
        """
        tables = self.client.server_info(timeout=timeout_s)
        check_same_run(tables, self.run_id, self.address)
        layout = self.layout
        return status_of(tables[layout.table], layout.env_steps_per_item, layout.samples_per_item)

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """Returns the transitions in the server, by its address; polls as `status` does."""
        return {self.address: self.status(timeout_s).size}


def connect(
    addresses: Sequence[str],
    places: Iterable[int],
    layout: ReplayLayout,
    directory: RunDirectory,
    config: Config,
    stop: Stop,
) -> list[ReplayServer] | None:
    """Waits until replay servers answer, one after another, and checks that they serve this run.

    Args:
      addresses: HOST:PORT of all servers of the run; the first one decides which run it is.
      places: indices of the servers to connect to.
      layout: the layout that this role writes or reads.
      directory: this role's run directory; records the run id of each server, or must agree with it.
      config: this role's configuration.
      stop: ends the wait.

    Returns:
      The servers in the order of `places`; None if a stop was requested meanwhile.

    Raises:
      ConfigurationError: a server serves another run, another configuration or another environment, or is
        named twice.
      RunError: one has not answered within CONNECT_DEADLINE_S.
    """
    servers: list[ReplayServer] = []
    for place in places:
        server = _connect(addresses[place], place, servers, layout, directory, config, stop)
        if server is None:
            return None
        servers.append(server)
    return servers


def _connect(
    address: str,
    place: int,
    others: Sequence[ReplayServer],
    layout: ReplayLayout,
    directory: RunDirectory,
    config: Config,
    stop: Stop,
) -> ReplayServer | None:
    """Waits until one server answers; `others` are connected already, other arguments as for `connect`."""
    client = reverb.Client(address)
    run_id = ""
    announced_by: float | None = None

    def has_joined() -> bool:
        nonlocal run_id, announced_by
        try:
            tables = client.server_info(timeout=_PROBE_TIMEOUT_S)
            run_id = _checked_run_id(tables, address, place, others, directory)
            different = differences(canonical(config), configuration_of(client, run_id))
        except UNREACHABLE:
            return False
        if different:
            announced_by = announced_by or time.monotonic() + _ANNOUNCE_S
            only_train_steps = all(line.startswith("learn.train_steps:") for line in different)
            if only_train_steps and time.monotonic() < announced_by:
                return False
            problem = f"--config: {address} serves run {run_id} with another configuration"
            raise ConfigurationError([f"{problem}: {line}" for line in different])
        _check_signature(tables, address, layout)
        return True

    if not wait_until(f"the replay server at {address}", has_joined, stop, deadline_s=CONNECT_DEADLINE_S):
        return None
    if place not in directory.server_run_ids():
        directory.remember_server(place, run_id)
    return ReplayServer(client, layout, run_id)


def _checked_run_id(
    tables: Iterable[str],
    address: str,
    place: int,
    others: Sequence[ReplayServer],
    directory: RunDirectory,
) -> str:
    """Returns the run id of a server with these tables; raises if it cannot be this run's server `place`."""
    here, there = directory.server_run_ids().get(place), run_id_of(tables)
    if there is None:
        problem = f"--replay_address: {address} is a Reverb server, but not a replay server of a run"
        raise ConfigurationError([problem])
    if same := [other.address for other in others if other.run_id == there]:
        problem = f"--replay_address: {same[0]} and {address} both serve run {there}"
        raise ConfigurationError(
            [f"{problem}; allowed: servers with a run directory of their own, once each"]
        )
    if here is not None and here != there:
        whose = "belongs to" if place == 0 else f"has replay server {place + 1} in"
        problem = f"--run_dir: {directory.path} {whose} run {here}, but {address} serves run {there}"
        raise ConfigurationError([f"{problem}; allowed: a new directory, or the replay server of that run"])
    return there


def _check_signature(
    tables: Mapping[str, reverb_types.TableInfo], address: str, layout: ReplayLayout
) -> None:
    """Checks the experience table: the code of an algorithm, the environment or this package may differ."""
    if layout.table not in tables:
        problem = f"agent.name: {address} stores what another version of this algorithm learns from"
        raise ConfigurationError([f"{problem}: it has no table {layout.table}"])
    there, here = _describe(tables[layout.table].signature), _describe(layout.signature)
    if there != here:
        problem = f"environment.name: {address} stores what another environment, or another version of this"
        raise ConfigurationError([f"{problem} program, writes: {there}, here {here}"])


def _describe(signature: object) -> str:
    """Returns the shapes and dtypes of an item's parts, to compare and to print."""
    return ", ".join(f"{spec.dtype.name}{spec.shape.as_list()}" for spec in tree.flatten(signature))
