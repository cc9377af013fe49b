"""What Reverb raises when a server cannot be reached, and calls with a deadline."""

import threading
from collections.abc import Callable
from typing import TypeVar

from reverb import errors as reverb_errors

UNREACHABLE = (reverb_errors.DeadlineExceededError, RuntimeError)
"""Raised by `server_info(timeout)` where no server answers in time, or one ends before it has answered."""

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
