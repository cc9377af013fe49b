"""Reverb's errors for a server that cannot be reached, and calls of Reverb with a deadline."""

import collections
import concurrent.futures
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import reverb
from reverb import errors as reverb_errors

UNREACHABLE = (reverb_errors.DeadlineExceededError, RuntimeError)
"""Raised by `server_info(timeout)` if no server answers in time, or if it ends before it has answered."""

_Result = TypeVar("_Result")


class NoAnswerError(RuntimeError):
    """A call of Reverb without a deadline of its own did not return in time; one of UNREACHABLE."""


def within(timeout_s: float, call: Callable[[], _Result]) -> _Result:
    """Makes a call with a deadline; sampling and inserting block for ever if their server ends meanwhile.

    Raises:
      NoAnswerError: the call has not returned after `timeout_s`. It continues on a thread of its own and may
        still take effect.
      Exception: what the call raises.
    """
    # Threads are reused: each thread that ends leaks some kilobytes inside Reverb.
    try:
        caller = _idle.pop()
    except IndexError:
        caller = _Caller()
    answer: concurrent.futures.Future[_Result] = concurrent.futures.Future()
    caller.calls.put((call, answer))
    if not concurrent.futures.wait([answer], timeout_s).done:
        caller.calls.put(None)
        raise NoAnswerError(f"the replay server has not answered within {timeout_s:g} s")
    _idle.append(caller)
    return answer.result()


def sample_one(client: reverb.Client, table: str, timeout_s: float) -> Any:
    """Returns a sampled item, whose `data` has the form of the table's signature; raises as `within`."""

    def sample() -> Any:
        samples = client.sample(table, 1, emit_timesteps=False, unpack_as_table_signature=True)
        return next(iter(samples))

    return within(timeout_s, sample)


class _Caller(threading.Thread):
    """A thread that makes one call after another, until it receives None.

    A ThreadPoolExecutor will not do: the process could not exit while one of its threads is blocked.
    """

    def __init__(self) -> None:
        super().__init__(name="reverb call", daemon=True)
        self.calls: queue.SimpleQueue[tuple[Callable[[], Any], concurrent.futures.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self.start()

    def run(self) -> None:
        while work := self.calls.get():
            call, answer = work
            try:
                answer.set_result(call())
            except BaseException as error:  # Raised again in the thread that waits for the answer.
                answer.set_exception(error)
            del work, call, answer  # Otherwise the result would stay in memory until the next call.


_idle: collections.deque[_Caller] = collections.deque()
