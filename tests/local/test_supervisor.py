"""When local mode restarts a role, and when it gives up."""

import dataclasses
import json
import math
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from actorlearner.config.schema import Config, EvaluateConfig
from actorlearner.errors import RunError
from actorlearner.local import supervisor as supervising
from actorlearner.local.supervisor import Restarts, Supervisor
from actorlearner.process.heartbeat import Heartbeat
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory


class Ended:
    """A process that exited with 1."""

    pid = 0

    def poll(self) -> int:
        return 1

    def send_signal(self, number: signal.Signals) -> None:
        """No-op."""


class Crashing:
    """A fork server whose roles crash at once, each with the next message."""

    alive, failure = True, ""

    def __init__(self, messages: Iterator[str]) -> None:
        self._messages = messages

    def fork(self, name: str, role: str, directory: RunDirectory, options: Any, notify: int) -> Ended:
        reports = [{"state": "crashed", "message": next(self._messages)}]
        os.write(notify, "".join(json.dumps(each) + "\n" for each in reports).encode())
        return Ended()

    def kill(self) -> None:
        """No-op."""


@pytest.fixture(name="supervisor")
def _supervisor(small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Restarts, "delay_s", lambda self, now: 0.0)

    def make(messages: Iterator[str]) -> Supervisor:
        monkeypatch.setattr(supervising, "ForkServer", lambda log, network, proxy: Crashing(messages))
        directory = RunDirectory(tmp_path)
        directory.prepare(small_config)
        return Supervisor(small_config, directory)

    return make


def test_a_role_that_crashes_twice_alike_at_its_start_is_not_restarted(supervisor: Any) -> None:
    supervised = supervisor(iter(lambda: "ValueError: no such shape", None))
    list(supervised.check())
    with pytest.raises(
        RunError, match="replay-server failed twice in the same way before it was ready: Value"
    ):
        list(supervised.check())


def test_the_last_warnings_of_a_role_that_fails_for_good_are_shown(supervisor: Any) -> None:
    supervised = supervisor(iter(lambda: "ValueError: no such shape", None))
    list(supervised.check())
    supervised.child("replay-server").warnings.append("the disk is full")
    checked = supervised.check()
    assert next(checked) == "replay-server: the disk is full"
    with pytest.raises(RunError, match="failed twice in the same way"):
        next(checked)


def test_a_role_that_crashes_differently_each_time_is_restarted_without_open_pipes(supervisor: Any) -> None:
    supervised = supervisor(map("RuntimeError: attempt {}".format, range(1_000)))
    list(supervised.check())
    before, started = len(os.listdir("/proc/self/fd")), len(supervised.started)
    for _ in range(5):
        list(supervised.check())
    assert len(supervised.started) == started + 5 * len(supervised.names)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("was_ready", [False, True])
def test_the_heartbeats_of_killed_roles_are_removed_at_the_end(
    supervisor: Any, tmp_path: Path, was_ready: bool
) -> None:
    supervised = supervisor(iter(lambda: "not important here", None))
    directory = RunDirectory(tmp_path)
    directory.heartbeats.mkdir()
    for name in supervised.names:
        supervised.child(name).ready = was_ready
        directory.heartbeat(name).touch()
    supervised.shut_down(Stop(), lambda line: None)
    assert list(directory.heartbeats.iterdir()) == []


def test_what_roles_report_while_they_end_is_shown(supervisor: Any) -> None:
    supervised = supervisor(map("attempt {}".format, range(100)))
    list(supervised.check())  # Has read the first error of each role, and started new processes.
    lines: list[str] = []
    supervised.shut_down(Stop(), lines.append)
    names = supervised.names
    assert lines == [f"{name}: attempt {i}" for i, name in enumerate(names, start=len(names))]
    assert not list(supervised._last_reports()), "each is shown once"


def test_without_evaluation_no_eval_actor_is_started(
    small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = Crashing(iter(lambda: "not important here", None))
    monkeypatch.setattr(supervising, "ForkServer", lambda log, network, proxy: crashing)
    config = dataclasses.replace(small_config, evaluate=EvaluateConfig(interval=None))
    directory = RunDirectory(tmp_path)
    directory.prepare(config)
    supervised = Supervisor(config, directory)
    assert "eval-actor" not in supervised.names
    assert not supervised.finished
    monkeypatch.setattr(Ended, "poll", lambda self: 0)
    assert supervised.finished


def test_a_starting_role_is_given_up_when_it_makes_no_progress(
    supervisor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Crashing, "fork", lambda *_, **__: SimpleNamespace(pid=0, poll=lambda: None))
    supervised = supervisor(iter(()))
    for name in supervised.names:
        supervised.child(name).started -= 2_000.0
        path = RunDirectory(tmp_path).heartbeat(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        beat = Heartbeat(time.time() - 900.0, ready=True, doing="making environment 3")
        path.write_text(json.dumps(dataclasses.asdict(beat)))
    assert list(supervised.check()) == []
    path.write_text(json.dumps(dataclasses.asdict(dataclasses.replace(beat, time=time.time() - 1_000.0))))
    with pytest.raises(RunError, match=f"{name} is not ready, and made no progress for 960 s"):
        list(supervised.check())
    supervised.child(name).started = math.inf  # It waits for a machine.
    assert list(supervised.check()) == []
