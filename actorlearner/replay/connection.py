"""Connects a role to its replay servers, with a deadline, and only if all of them serve its run."""

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence

import reverb
import tree
from reverb import reverb_types

from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.run_identity import LengthError, join

CONNECT_DEADLINE_S = 300.0
"""How long a role waits for a replay server: roles may be started in any order, on any machine."""

_PROBE_TIMEOUT_S = 2
_ANNOUNCE_S = 5.0
"""Seconds in which a restored server may still announce the fewer train steps that it was saved with."""


@dataclasses.dataclass(frozen=True)
class ReplayServer:
    """A replay server that a role is connected to.

    Attributes:
      address: HOST:PORT.
      client: a Reverb client of the server.
      run_id: the id of the run that it serves.
    """

    address: str
    client: reverb.Client
    run_id: str


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
      directory: this role's run directory; the first servers it joins decide which run it belongs to.
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
        others = {server.address: server.run_id for server in servers}
        server = _connect(addresses[place], place, others, layout, directory, config, stop)
        if server is None:
            return None
        servers.append(server)
    return servers


def _connect(
    address: str,
    place: int,
    others: Mapping[str, str],
    layout: ReplayLayout,
    directory: RunDirectory,
    config: Config,
    stop: Stop,
) -> ReplayServer | None:
    client = reverb.Client(address)
    joined: list[str] = []
    refused: list[float] = []

    def has_joined() -> bool:
        try:
            tables = client.server_info(timeout=_PROBE_TIMEOUT_S)
            joined.append(join(client, address, place, others, tables, directory, config))
        except UNREACHABLE:
            return False
        except LengthError:
            refused.append(time.monotonic())
            if refused[-1] - refused[0] >= _ANNOUNCE_S:
                raise
            return False
        _check_signature(tables, address, layout)
        return True

    what = f"the replay server at {address}"
    if not wait_until(what, has_joined, stop, deadline_s=CONNECT_DEADLINE_S):
        return None
    return ReplayServer(address, client, joined[0])


def _check_signature(
    tables: Mapping[str, reverb_types.TableInfo], address: str, layout: ReplayLayout
) -> None:
    """Checks the signature, which also differs if the environment's code differs, or this package's."""
    there, here = _describe(tables[layout.table].signature), _describe(layout.signature)
    if there != here:
        problem = f"environment.name: {address} stores what another environment, or another version of this"
        raise ConfigurationError([f"{problem} program, writes: {there}, here {here}"])


def _describe(signature: object) -> str:
    """Returns the shapes and dtypes of an item's parts, to compare and to print."""
    return ", ".join(f"{spec.dtype.name}{spec.shape.as_list()}" for spec in tree.flatten(signature))
