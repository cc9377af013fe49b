"""What Reverb raises when a server cannot be reached, and connecting with a deadline."""

import threading
from collections.abc import Callable
from typing import TypeVar

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


_Result = TypeVar("_Result")


class NoAnswerError(RuntimeError):
    """A call of Reverb that has no deadline of its own has not returned in time; one of UNREACHABLE."""


def within(timeout_s: float, call: Callable[[], _Result]) -> _Result:
    """Calls what may block for ever, as sampling and inserting do when their server ends meanwhile.

    Raises:
      NoAnswerError: the call has not returned after `timeout_s`. It is left behind on a thread of its own and
        may still have its effect.
      Exception: what the call raises.
    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body, name="reverb call", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if errors:
        raise errors[0]
    if not results:
        raise NoAnswerError(f"the replay server has not answered within {timeout_s:g} s")
    return results[0]


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
