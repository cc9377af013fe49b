"""Calls with a deadline."""

import threading
import time

import pytest

from actorlearner.replay.reverb_calls import UNREACHABLE, NoAnswerError, within


def test_a_result_in_time_is_returned() -> None:
    assert within(30.0, lambda: 7) == 7
    assert within(30.0, lambda: None) is None


def test_an_error_is_raised_in_the_calling_thread() -> None:
    def fail() -> None:
        raise ValueError("signature")

    with pytest.raises(ValueError, match="signature"):
        within(30.0, fail)


def test_a_blocked_call_is_abandoned() -> None:
    forever = threading.Event()
    began = time.monotonic()
    with pytest.raises(NoAnswerError, match=r"within 0\.05 s"):
        within(0.05, forever.wait)
    assert time.monotonic() - began < 10
    assert issubclass(NoAnswerError, UNREACHABLE)
    forever.set()


def test_calls_share_a_thread_until_one_is_abandoned() -> None:
    first = within(30.0, threading.current_thread)
    assert within(30.0, threading.current_thread) is first
    forever = threading.Event()
    with pytest.raises(NoAnswerError):
        within(0.05, forever.wait)
    forever.set()  # What was left behind ends once its call returns.
    first.join(30.0)
    assert not first.is_alive()
    assert within(30.0, threading.current_thread) is not first


def test_calls_from_several_threads_do_not_wait_for_each_other() -> None:
    together = threading.Barrier(3)
    threads = [threading.Thread(target=lambda: within(30.0, lambda: together.wait(30.0))) for _ in range(2)]
    for thread in threads:
        thread.start()
    within(30.0, lambda: together.wait(30.0))
    for thread in threads:
        thread.join()
    assert not together.broken
