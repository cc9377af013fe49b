"""A child process: what it tells, how it ends, and that its log keeps what it printed."""

import os
import sys
from pathlib import Path

import pytest

from actorlearner.local.child import Child
from actorlearner.notify import NOTIFY_VARIABLE
from tests.conftest import Eventually


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "learner.log"


def test_a_refused_command_line_is_in_the_log(log: Path, eventually: Eventually) -> None:
    child = Child("local", ["local", "--config", "no_such_file.yaml"], log)
    eventually(lambda: child.exit_code is not None)
    assert child.exit_code == 2
    assert any("no_such_file.yaml" in line for line in child.last_log_lines())


def test_what_a_role_tells_is_taken_in_also_in_pieces(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child("learner", ["--version"], log)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    monkeypatch.setattr(child, "_reader", reader)
    os.write(writer, b'{"state": "ready", "mess')
    child.listen()
    assert not child.ready
    os.write(writer, b'age": "imports 1.0 s"}\n{"state": "failed", "message": "no port"}\n')
    child.listen()
    assert child.ready
    assert child.start_up == "imports 1.0 s"
    os.write(writer, b'{"state": "started", "message": "imports 1.0 s, tables 0.1 s"}\n')
    child.listen()
    assert child.start_up == "imports 1.0 s, tables 0.1 s"
    assert child.error == "no port"
    assert child.wait(30)


def test_terminate_and_kill_end_a_child(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A process that waits for ever stands in for a role here; -m actorlearner would need seconds to start.
    monkeypatch.setattr(sys, "executable", "/bin/sleep")
    monkeypatch.setattr("actorlearner.local.child._arguments", lambda arguments: list(arguments))
    terminated = Child("a", ["1000"], log)
    assert not terminated.wait(0.01)
    terminated.terminate()
    assert terminated.wait(10)
    assert terminated.exit_code == -15
    killed = Child("b", ["1000"], log)
    killed.kill()
    assert killed.exit_code == -9


def test_the_pipe_is_named_to_the_child_only(log: Path) -> None:
    child = Child("learner", ["--version"], log)
    assert child.wait(30)
    assert NOTIFY_VARIABLE not in os.environ
