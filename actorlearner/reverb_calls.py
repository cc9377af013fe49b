"""What Reverb raises when a server cannot be reached, and connecting with a deadline."""

import reverb
import tree
from reverb import errors as reverb_errors

from actorlearner.errors import RunError
from actorlearner.replay.layout import ReplayLayout
from actorlearner.stop import Stop
from actorlearner.waiting import wait_until

UNREACHABLE = (reverb_errors.DeadlineExceededError, RuntimeError)
"""Raised by `server_info(timeout)` where no server answers in time, or one ends before it has answered."""

CONNECT_DEADLINE_S = 300.0
"""How long a role waits for the replay server: roles may be started in any order, on any machine."""

_PROBE_TIMEOUT_S = 2


def connect(address: str, layout: ReplayLayout, stop: Stop) -> reverb.Client | None:
    """Waits until the replay server at `address` answers, and checks that it stores what we write.

    Returns:
      A client; None if a stop was requested meanwhile.

    Raises:
      RunError: no answer within CONNECT_DEADLINE_S, or its table is of another environment or agent.
    """
    client = reverb.Client(address)

    def answers() -> bool:
        try:
            client.server_info(timeout=_PROBE_TIMEOUT_S)
        except UNREACHABLE:
            return False
        return True

    what = f"the replay server at {address}"
    if not wait_until(what, answers, stop, deadline_s=CONNECT_DEADLINE_S):
        return None
    _check_signature(client, address, layout)
    return client


def _check_signature(client: reverb.Client, address: str, layout: ReplayLayout) -> None:
    tables = client.server_info(timeout=_PROBE_TIMEOUT_S)
    if layout.table not in tables:
        raise RunError(
            f"the Reverb server at {address} has no table {layout.table}, which this replay.layout is kept in"
        )
    there, here = _describe(tables[layout.table].signature), _describe(layout.signature)
    if there != here:
        raise RunError(
            f"the replay server at {address} stores transitions of another environment: {there}, here {here}"
        )


def _describe(signature: object) -> str:
    """Shapes and dtypes of the parts of an item, for comparison and for people."""
    return ", ".join(f"{spec.dtype.name}{spec.shape.as_list()}" for spec in tree.flatten(signature))
