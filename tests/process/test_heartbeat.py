"""Heartbeats: how often they are written, and what a reader gets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.process import heartbeat
from actorlearner.process.heartbeat import (
    INTERVAL_S,
    LONG_PATIENCE_S,
    PATIENCE_S,
    beat,
    is_overdue,
    patience_after,
    read_heartbeat,
)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1.0e9 + self.now


@pytest.fixture(name="clock")
def _clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(heartbeat, "time", clock)
    return clock


@pytest.fixture(name="path")
def _path(tmp_path: Path, clock: Clock) -> Iterator[Path]:
    path = tmp_path / "run" / "health" / "learner.json"
    heartbeat.begin(path)
    yield path
    heartbeat.end()


def test_a_role_begins_by_starting(path: Path, clock: Clock) -> None:
    begun = read_heartbeat(path)
    assert (begun.ready, begun.doing, begun.time) == (False, "starting", clock.time())


def test_the_file_says_what_the_role_does(path: Path, clock: Clock) -> None:
    clock.now += 5
    beat("train step", 12_345)
    written = read_heartbeat(path)
    assert (written.ready, written.doing) == (True, "train step 12,345")
    assert (written.time, written.patience_s) == (clock.time(), PATIENCE_S)


def test_it_is_written_at_intervals_only(path: Path, clock: Clock) -> None:
    beat("train step", 1)
    clock.now += INTERVAL_S - 0.1
    beat("train step", 2)
    assert read_heartbeat(path).doing == "train step 1"
    clock.now += 0.2
    beat("train step", 3)
    assert read_heartbeat(path).doing == "train step 3"


def test_a_change_of_patience_is_written_at_once(path: Path) -> None:
    beat("train step", 1)
    beat("writing a checkpoint", patience_s=LONG_PATIENCE_S)
    assert read_heartbeat(path).patience_s == LONG_PATIENCE_S
    beat("train step", 2)
    assert read_heartbeat(path).patience_s == PATIENCE_S


def test_a_role_that_ended_leaves_no_file(path: Path) -> None:
    beat("train step", 1)
    heartbeat.end()
    assert list(path.parent.iterdir()) == []
    beat("train step", 2)  # Outside of a role.
    assert list(path.parent.iterdir()) == []


def test_a_heartbeat_is_overdue_after_the_announced_time(path: Path, clock: Clock) -> None:
    beat("train step", 1)
    clock.now += PATIENCE_S
    assert not is_overdue(path, since=0.0)
    clock.now += 1
    assert is_overdue(path, since=0.0)
    assert not is_overdue(path, since=read_heartbeat(path).time + 1)
    beat("writing a checkpoint", patience_s=LONG_PATIENCE_S)
    clock.now += LONG_PATIENCE_S
    assert not is_overdue(path, since=0.0)
    clock.now += 1
    assert is_overdue(path, since=0.0)


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"time": 3}'])
def test_no_heartbeat_is_not_overdue(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "learner.json"
    if text is not None:
        path.write_text(text)
    assert not is_overdue(path, since=0.0)


@pytest.mark.parametrize("letter", ["x", "\x00", "\udcff", "\U0001f9be", '"'])
def test_a_long_text_is_cut_and_overwritten(path: Path, clock: Clock, letter: str) -> None:
    beat(letter * 10_000, 10**12)
    assert read_heartbeat(path).doing.endswith(" 1,000,000,000,000")
    size = path.stat().st_size
    clock.now += INTERVAL_S
    beat("train step", 3)
    assert read_heartbeat(path).doing == "train step 3"
    assert path.stat().st_size == size  # It needs no more room on the disk than at the start.


def test_slow_env_steps_have_a_long_patience() -> None:
    assert [patience_after(slowest_s) for slowest_s in (None, 0.5, 30.0)] == [900.0, 60.0, 900.0]
