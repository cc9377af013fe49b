"""A child process: its reports and its end."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from actorlearner.local.child import Child
from tests.support.processes import sleeper


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "learner.log"


def test_reports_may_arrive_in_pieces(log: Path) -> None:
    writers: list[int] = []

    def launch(writer: int) -> subprocess.Popen[bytes]:
        writers.append(os.dup(writer))
        return sleeper(writer)

    child = Child("learner", launch, log)
    os.write(writers[0], b'{"state": "ready", "mess')
    child.receive()
    assert not child.ready
    os.write(writers[0], b'age": "imports 1.0 s"}\n{"state": "failed", "message": "no port"}\n')
    child.receive()
    assert child.ready
    assert child.start_up == "imports 1.0 s"
    assert not child.may_be_restarted
    os.write(writers[0], b'{"state": "started", "message": "imports 1.0 s, tables 0.1 s"}\n')
    child.receive()
    assert child.start_up == "imports 1.0 s, tables 0.1 s"
    assert child.error == "no port"
    child.kill()


def test_terminate_and_kill_end_a_child(log: Path) -> None:
    terminated = Child("a", sleeper, log)
    assert not terminated.wait(0.01)
    terminated.send(signal.SIGTERM)
    assert terminated.wait(10)
    assert terminated.exit_code == -15
    killed = Child("b", sleeper, log)
    killed.kill()
    assert killed.exit_code == -9
    assert killed.reason == "killed by signal 9"
