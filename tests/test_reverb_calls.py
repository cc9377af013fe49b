"""Calls with a deadline."""

import threading
import time

import pytest

from actorlearner.reverb_calls import UNREACHABLE, NoAnswerError, within


def test_what_returns_in_time_is_returned() -> None:
    assert within(30.0, lambda: 7) == 7
    assert within(30.0, lambda: None) is None


def test_what_is_raised_is_raised_here() -> None:
    def fail() -> None:
        raise ValueError("signature")

    with pytest.raises(ValueError, match="signature"):
        within(30.0, fail)


def test_what_blocks_is_left_behind() -> None:
    forever = threading.Event()
    began = time.monotonic()
    with pytest.raises(NoAnswerError, match=r"within 0\.05 s"):
        within(0.05, forever.wait)
    assert time.monotonic() - began < 10
    assert issubclass(NoAnswerError, UNREACHABLE)
    forever.set()
