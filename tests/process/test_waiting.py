"""Waits end, and log what they wait for."""

import logging
import threading

import pytest

from actorlearner.errors import RunError
from actorlearner.process import waiting
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import WaitReport, wait_until


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


class WaitingStop(Stop):
    """A stop whose `wait` advances the clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.waits: list[float] = []

    def wait(self, timeout_s: float) -> bool:
        self.waits.append(timeout_s)
        self._clock.now += timeout_s
        return super().wait(0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(waiting, "time", clock)
    return clock


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the logged messages."""
    messages: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    monkeypatch.setattr(logging.getLogger("actorlearner.process.waiting"), "handlers", [Handler()])
    return messages


def test_a_condition_that_holds_needs_no_wait(clock: Clock) -> None:
    stop = WaitingStop(clock)
    assert wait_until("nothing", lambda: True, stop, deadline_s=0.0)
    assert stop.waits == []


def test_it_polls_until_the_condition_holds(clock: Clock) -> None:
    stop = WaitingStop(clock)
    answers = iter([False, False, False, True])
    assert wait_until("luck", lambda: next(answers), stop, deadline_s=60.0, interval_s=0.25)
    assert stop.waits == [0.25] * 3


def test_the_condition_is_polled_before_a_stop() -> None:
    stop = Stop()
    stop.request()
    assert wait_until("nothing", lambda: True, stop, deadline_s=None)
    assert not wait_until("luck", lambda: False, stop, deadline_s=None)


def test_a_stop_ends_the_wait() -> None:
    stop = Stop()
    asked = threading.Event()

    def condition() -> bool:
        asked.set()
        return False

    def request() -> None:
        asked.wait()
        stop.request()

    thread = threading.Thread(target=request)
    thread.start()
    # The interval is longer than the test may take: the stop must interrupt it.
    assert not wait_until("luck", condition, stop, deadline_s=None, interval_s=600.0)
    thread.join()


def test_a_deadline_fails_the_run(clock: Clock) -> None:
    stop = WaitingStop(clock)
    with pytest.raises(RunError, match=r"^gave up waiting for the replay server after 5 s$"):
        wait_until("the replay server", lambda: False, stop, deadline_s=5.0, interval_s=1.0)
    assert stop.waits == [1.0] * 5


def test_without_a_deadline_it_logs_every_ten_seconds(clock: Clock, logged: list[str]) -> None:
    start = clock.now
    stop = WaitingStop(clock)
    assert wait_until("luck", lambda: clock.now - start > 35, stop, deadline_s=None, interval_s=0.5)
    assert logged == [f"waiting for luck, for {seconds} s so far" for seconds in (10, 20, 30)]


def test_a_short_wait_is_silent(clock: Clock, logged: list[str]) -> None:
    start = clock.now
    stop = WaitingStop(clock)
    assert wait_until("luck", lambda: clock.now - start > 9, stop, deadline_s=None)
    assert logged == []


def test_a_report_counts_from_its_start(clock: Clock, logged: list[str]) -> None:
    report = WaitReport()
    clock.now += 9.5
    report.log("one")
    clock.now += 1.0
    report.log("another")
    report.log("a third")
    assert report.waited_s == 10.5
    assert logged == ["waiting for another, for 10 s so far"]


def test_a_reason_is_computed_only_when_it_is_logged(clock: Clock, logged: list[str]) -> None:
    asked = []

    def reason() -> str:
        asked.append(clock.now)
        return "the learner"

    report = WaitReport()
    for _ in range(25):
        report.log(reason)
        clock.now += 1.0
    assert asked == [1_010.0, 1_020.0]
    assert len(logged) == 2
    assert "waiting for the learner, for 20 s so far" in logged[1]
