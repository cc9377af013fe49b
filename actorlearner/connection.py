"""Connecting a role to its replay server: with a deadline, and only if both are of the same run."""

from collections.abc import Mapping

import reverb
import tree
from reverb import reverb_types

from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.replay.layout import ReplayLayout
from actorlearner.reverb_calls import UNREACHABLE
from actorlearner.run_directory import RunDirectory
from actorlearner.run_identity import join
from actorlearner.stop import Stop
from actorlearner.waiting import wait_until

CONNECT_DEADLINE_S = 300.0
"""How long a role waits for the replay server: roles may be started in any order, on any machine."""

_PROBE_TIMEOUT_S = 2


def connect(
    address: str, layout: ReplayLayout, directory: RunDirectory, config: Config, stop: Stop
) -> reverb.Client | None:
    """Waits until the replay server at `address` answers, and checks that it is one of this run.

    Args:
      address: HOST:PORT.
      layout: what this role writes or reads.
      directory: of this role; the first server that it is connected to decides which run it belongs to.
      config: of this role.
      stop: ends the wait.

    Returns:
      A client; None if a stop was requested meanwhile.

    Raises:
      ConfigurationError: the server serves another run, another configuration or another environment.
      RunError: no answer within CONNECT_DEADLINE_S.
    """
    client = reverb.Client(address)

    def joined() -> bool:
        try:
            tables = client.server_info(timeout=_PROBE_TIMEOUT_S)
            join(client, address, tables, directory, config)
        except UNREACHABLE:
            return False
        _check_signature(tables, address, layout)
        return True

    what = f"the replay server at {address}"
    return client if wait_until(what, joined, stop, deadline_s=CONNECT_DEADLINE_S) else None


def _check_signature(
    tables: Mapping[str, reverb_types.TableInfo], address: str, layout: ReplayLayout
) -> None:
    """Even one configuration may stand for two environments, where their code differs."""
    there, here = _describe(tables[layout.table].signature), _describe(layout.signature)
    if there != here:
        problem = f"environment.name: {address} stores transitions of another environment"
        raise ConfigurationError([f"{problem}: {there}, here {here}"])


def _describe(signature: object) -> str:
    """Shapes and dtypes of the parts of an item, for comparison and for people."""
    return ", ".join(f"{spec.dtype.name}{spec.shape.as_list()}" for spec in tree.flatten(signature))
