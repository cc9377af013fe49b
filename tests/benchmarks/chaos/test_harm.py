"""Harm to real processes: done when it is due, ended in time, and seen."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actorlearner.local.child import Child
from actorlearner.records.run_directory import RunDirectory
from benchmarks.chaos.harm import Harmer
from benchmarks.chaos.link import Links
from benchmarks.chaos.schedule import SERVER, Harm, Kind
from benchmarks.chaos.watch import Watch, still_running
from tests.conftest import Eventually
from tests.support.processes import sleeper


class Sleepers:
    """Stands in for a supervisor: its roles sleep."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._children: dict[str, Child] = {}
        self.started: list[Child] = []

    def start(self, role: str) -> Child:
        self._children[role] = Child(role, sleeper, self._log)
        self.started.append(self._children[role])
        return self._children[role]

    def child(self, role: str) -> Child:
        return self._children[role]


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Any]:
    sleepers = Sleepers(tmp_path / "log")
    for role in (SERVER, "learner"):
        sleepers.start(role)
    yield sleepers
    for child in sleepers.started:
        child.kill()


@pytest.fixture
def links() -> Iterator[Links]:
    links = Links()
    links.route("learner", 1)
    yield links
    links.close()


def state(child: Child) -> str:
    return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_kill_is_done_when_it_is_due_and_waits_for_a_process(supervisor: Any, links: Links) -> None:
    harmer = Harmer(supervisor, links)
    assert list(harmer.check()) == []
    kills = [Harm(0.0, "learner", Kind.KILL), Harm(0.0, "learner", Kind.KILL)]
    harmer.begin([*kills, Harm(1_000.0, SERVER, Kind.KILL)])
    first = supervisor.child("learner")
    (line,) = harmer.check()
    assert re.fullmatch(r" *\d+\.\d s  kill learner", line)
    assert first.exit_code == -9
    assert list(harmer.check()) == []  # There is nothing to kill.
    second = supervisor.start("learner")
    assert len(list(harmer.check())) == 1
    assert harmer.killed == {first.pid, second.pid}
    assert harmer.left == 1
    assert all(done.ended is not None and done.ended >= done.began for done in harmer.done)


def test_a_stop_ends_in_time(supervisor: Any, links: Links, eventually: Eventually) -> None:
    harmer = Harmer(supervisor, links)
    harmer.begin([Harm(0.0, "learner", Kind.STOP, 0.3)])
    assert len(list(harmer.check())) == 1
    eventually(lambda: state(supervisor.child("learner")) == "T")
    eventually(lambda: not list(harmer.check()) and harmer.done[0].ended is not None)
    assert harmer.done[0].ended - harmer.done[0].began >= 0.3
    eventually(lambda: state(supervisor.child("learner")) == "S")


@pytest.mark.parametrize("kind", [Kind.STOP, Kind.CUT])
def test_the_end_of_a_run_ends_all_harm(
    supervisor: Any, links: Links, eventually: Eventually, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    healed: list[bool] = []
    monkeypatch.setattr(links.of("learner"), "heal", lambda *, drop: healed.append(drop))
    harmer = Harmer(supervisor, links)
    harmer.begin([Harm(0.0, "learner", kind, 1_000.0, drops=True)])
    list(harmer.check())
    harmer.end()
    assert harmer.done[0].ended is not None
    eventually(lambda: state(supervisor.child("learner")) == "S")
    assert healed == ([True] if kind is Kind.CUT else [])


def test_deaths_are_seen_and_told_apart(supervisor: Any, tmp_path: Path) -> None:
    watch = Watch(supervisor, RunDirectory(tmp_path))
    watch.poll(set())
    assert watch.unplanned_deaths == []
    for role in (SERVER, "learner"):
        supervisor.child(role).kill()
    for _ in range(2):
        watch.poll({supervisor.child(SERVER).pid})
    assert watch.unplanned_deaths == ["learner died by itself: killed by signal 9"]
    (loss,) = watch.losses
    assert loss.saved_at == 0  # There is no checkpoint.
    assert set(watch.roles.values()) == {SERVER, "learner"}


def test_a_process_that_is_left_is_found(supervisor: Any) -> None:
    sessions = {child.pid for child in supervisor.started}
    assert set(still_running(sessions)) == sessions
    supervisor.child("learner").kill()
    assert still_running(sessions) == [supervisor.child(SERVER).pid]
