"""The end of the learner and the replay server: they get time to save, and a second Ctrl-C gives up."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.local import saving
from actorlearner.local.child import Child
from actorlearner.process import heartbeat
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory

SAVES = """
import os, pathlib, signal, sys
allowed, saved = map(pathlib.Path, sys.argv[1:])
def save(number, frame):
    allowed.read_bytes()  # Of a pipe: blocks until somebody writes to it.
    saved.touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("serves", flush=True)
while True:
    signal.pause()
"""

DOING = {
    "learner": "the learner ends its train step and saves",
    "replay-server": "saving replay",
}
LOST = {
    "learner": "the train steps since the last checkpoint",
    "replay-server": "the transitions since the last checkpoint",
}


class Role:
    """A process that saves when it is asked to end, which takes until `finish` is called."""

    def __init__(self, name: str, path: Path) -> None:
        self._pipe, self.saved = path / "pipe", path / "saved"
        os.mkfifo(self._pipe)
        self.directory = RunDirectory(path / "run")
        self.child = Child(name, self._launch, path / "log")

    def _launch(self, writer: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", SAVES, str(self._pipe), str(self.saved)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"serves\n"
        return process

    def finish(self) -> None:
        """Lets it save; does not block."""
        threading.Thread(target=self._pipe.write_bytes, args=(b"go",), daemon=True).start()

    def beat(self, age_s: float) -> None:
        """Writes a heartbeat of some time ago."""
        path = self.directory.heartbeat(self.child.name)
        path.parent.mkdir(parents=True)
        beat = heartbeat.Heartbeat(time.time() - age_s, ready=True, doing="saving", patience_s=60.0)
        path.write_text(json.dumps(dataclasses.asdict(beat)))


@pytest.fixture(name="role", params=["learner", "replay-server"])
def _role(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Role]:
    monkeypatch.setattr(saving, "_NOTICE_S", 0.01)
    monkeypatch.setattr(saving, "_POLL_INTERVAL_S", 0.01)
    role = Role(request.param, tmp_path)
    yield role
    role.child.kill()


def test_a_role_gets_the_time_that_saving_takes(role: Role) -> None:
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        role.finish()

    role.child.send(signal.SIGTERM)
    saving.wait_saved(role.child, role.directory, Stop(), report)
    name = role.child.name
    assert lines == [f"{DOING[name]}; Ctrl-C gives up, and loses {LOST[name]}"]
    assert role.saved.exists()
    assert role.child.exit_code == 143


@pytest.mark.parametrize(("number", "gives_up"), [(signal.SIGINT, True), (signal.SIGHUP, False)])
def test_only_ctrl_c_gives_up_saving(role: Role, number: signal.Signals, gives_up: bool) -> None:
    stop = Stop()
    stop._handle(signal.SIGINT, None)  # What has ended the run.
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if len(lines) == 1:
            stop._handle(number, None)
            if not gives_up:
                role.finish()

    role.child.send(signal.SIGTERM)
    saving.wait_saved(role.child, role.directory, stop, report)
    assert role.saved.exists() is not gives_up
    assert role.child.exit_code == (-signal.SIGKILL if gives_up else 143)
    name = role.child.name
    assert lines[1:] == [f"the {name} did not save: {LOST[name]} are lost"] * gives_up


def test_a_role_whose_heartbeat_is_overdue_is_killed(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    role.beat(age_s=61.0)
    monkeypatch.setattr(saving, "is_overdue", lambda path, since: heartbeat.is_overdue(path, since - 61.0))
    lines: list[str] = []
    role.child.send(signal.SIGTERM)
    saving.wait_saved(role.child, role.directory, Stop(), lines.append)
    assert role.child.exit_code == -signal.SIGKILL
    name = role.child.name
    assert lines[1:] == [f"the {name} did not save: {LOST[name]} are lost"]


def test_a_role_that_makes_progress_is_waited_for(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    role.beat(age_s=1.0)

    def is_overdue(path: Path, since: float) -> bool:
        role.finish()  # Only after this look at its heartbeat.
        return heartbeat.is_overdue(path, since)

    monkeypatch.setattr(saving, "is_overdue", is_overdue)
    lines: list[str] = []
    role.child.send(signal.SIGTERM)
    saving.wait_saved(role.child, role.directory, Stop(), lines.append)
    assert role.child.exit_code == 143
    assert len(lines) == 1
