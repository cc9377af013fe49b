"""Shares of a loop's time, with a fake clock."""

import pytest

from actorlearner.records.time_shares import TimeShares


def test_shares_are_fractions_of_the_time_since_the_last_call() -> None:
    now = [100.0]
    shares = TimeShares("a", "b", clock=lambda: now[0])
    for seconds, part in ((1.0, "a"), (2.0, "b"), (4.0, None), (1.0, "a")):
        now[0] += seconds
        shares.spent(part)
    now[0] += 2.0  # Time that is not assigned to any part yet.
    assert shares.take() == pytest.approx({"a": 0.2, "b": 0.2})
    now[0] += 3.0
    shares.spent("b")
    assert shares.take() == pytest.approx({"a": 0.0, "b": 1.0})
