"""Reverb's errors for a server that cannot be reached, and calls of Reverb with a deadline."""

import collections
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from reverb import errors as reverb_errors

UNREACHABLE = (reverb_errors.DeadlineExceededError, RuntimeError)
"""Raised by `server_info(timeout)` if no server answers in time, or if it ends before it has answered."""

_Result = TypeVar("_Result")


class NoAnswerError(RuntimeError):
    """A call of Reverb without a deadline of its own did not return in time; one of UNREACHABLE."""


def within(timeout_s: float, call: Callable[[], _Result]) -> _Result:
    """Makes a call that may block for ever, as sampling and inserting do if their server ends meanwhile.

    Raises:
      NoAnswerError: the call has not returned after `timeout_s`. It goes on in a thread of its own and may
        still have its effect.
      Exception: what the call raises.
    """
    # Threads are reused: each thread that ends leaks some kilobytes inside Reverb.
    try:
        caller = _idle.pop()
    except IndexError:
        caller = _Caller()
    answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
    caller.calls.put((call, answer))
    try:
        returned, result = answer.get(timeout=timeout_s)
    except queue.Empty:
        caller.calls.put(None)
        raise NoAnswerError(f"the replay server has not answered within {timeout_s:g} s") from None
    _idle.append(caller)
    if returned:
        return cast(_Result, result)
    raise result


class _Caller(threading.Thread):
    """A thread that makes one call after another, until it receives None."""

    def __init__(self) -> None:
        super().__init__(name="reverb call", daemon=True)
        self.calls: queue.SimpleQueue[
            tuple[Callable[[], Any], queue.SimpleQueue[tuple[bool, Any]]] | None
        ] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while work := self.calls.get():
            call, answer = work
            try:
                answer.put((True, call()))
            except BaseException as error:  # Raised again in the thread that waits for the answer.
                answer.put((False, error))
            del work, call, answer  # Otherwise the result would stay in memory until the next call.


_idle: collections.deque[_Caller] = collections.deque()
