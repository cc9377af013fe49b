"""The events of a run: written by several processes, and read despite damaged lines between them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.records import notify
from actorlearner.records.events import DIED, STARTED, WARNED, EventLog, read_events
from actorlearner.records.notify import on_warning, warn
from tests.support.full_disk import fill, small_disk


@pytest.fixture(autouse=True)
def _no_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "_listeners", [])


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, mebibytes=1) as path:
        yield path


def events(path: Path) -> list[tuple[str, str, str]]:
    return [(event["role"], event["event"], event["text"]) for event in read_events(path)]


def test_events_of_several_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    local, actor = EventLog(path, "local"), EventLog(path, "collect-actor-0")
    actor.record(STARTED)
    local.record(DIED, "killed by signal 9", role="collect-actor-0")
    actor.record(WARNED, "two\nlines \u2028 of text \udcff")
    assert events(path) == [
        ("collect-actor-0", "started", ""),
        ("collect-actor-0", "died", "killed by signal 9"),
        ("collect-actor-0", "warned", "two\nlines \u2028 of text \udcff"),
    ]


def test_lines_that_are_not_events_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert read_events(path) == []
    log = EventLog(path, "learner")
    log.record(STARTED)
    with path.open("a") as file:
        file.write('{"time": 1.0}\n[1]\n{"time": \nnull\n')
    log.record(WARNED, "it goes on")
    with path.open("a") as file:
        file.write('{"time": 2.0, "role": "learner", "event": "warn')
    assert events(path) == [("learner", "started", ""), ("learner", "warned", "it goes on")]


def test_what_is_said_of_a_full_disk_is_an_event_once_there_is_room(small: Path) -> None:
    """The events file is on the full disk as well, so its own outage becomes an event, too."""
    path = small / "folder" / "events.jsonl"
    filler = fill(small)
    log = EventLog(path, "learner")
    on_warning(lambda line: log.record(WARNED, line))
    warn("something is wrong")
    filler.unlink()
    log.record(STARTED)
    outage = f"the disk is full: the events are not written to {path} for now, and the run continues"
    assert [text for _, _, text in events(path)] == ["something is wrong", outage, ""]
