"""Health by heartbeats, and by an answer of the replay server."""

import dataclasses
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from actorlearner.process.health import Health, check, run_health
from actorlearner.process.heartbeat import PATIENCE_S, Heartbeat
from actorlearner.process.role_names import ROLES
from actorlearner.records.run_directory import RunDirectory

NOW = 1.0e9
Write = Callable[..., None]


@pytest.fixture(name="directory")
def _directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


@pytest.fixture(name="write")
def _write(directory: RunDirectory) -> Write:
    directory.heartbeats.mkdir()

    def write(name: str, doing: str = "train step 8", age_s: float = 1.0, **more: object) -> None:
        heartbeat = Heartbeat(**{"time": NOW - age_s, "ready": True, "doing": doing, **more})
        directory.heartbeat(name).write_text(json.dumps(dataclasses.asdict(heartbeat)))

    return write


def test_a_role_that_makes_progress_is_healthy(directory: RunDirectory, write: Write) -> None:
    write("learner")
    assert check(["learner"], directory, now=NOW) == [Health("learner", True, "train step 8, 1 s ago")]


def test_a_role_without_a_recent_heartbeat_is_not_healthy(directory: RunDirectory, write: Write) -> None:
    write("learner", age_s=PATIENCE_S + 10)
    why = "no heartbeat for 70 s (allowed: 60 s), after: train step 8"
    assert check(["learner"], directory, now=NOW) == [Health("learner", False, why)]


def test_a_role_may_announce_a_longer_step(directory: RunDirectory, write: Write) -> None:
    write("learner", "writing a checkpoint", age_s=PATIENCE_S + 10, patience_s=100.0)
    assert check(["learner"], directory, now=NOW)[0].healthy
    assert not check(["learner"], directory, now=NOW + 31)[0].healthy


def test_a_clock_that_was_set_back_does_not_matter(directory: RunDirectory, write: Write) -> None:
    write("learner", age_s=-1_000)
    assert check(["learner"], directory, now=NOW)[0].healthy


def test_a_role_that_starts_is_not_healthy_yet(directory: RunDirectory, write: Write) -> None:
    write("learner", "starting", ready=False)
    assert check(["learner"], directory, now=NOW) == [Health("learner", False, "starting, 1 s ago")]


def test_a_role_that_does_not_run_is_not_healthy(directory: RunDirectory, write: Write) -> None:
    write("learner")
    [health] = check(["eval-actor"], directory, now=NOW)
    assert health == Health("eval-actor", False, f"no such process runs in {directory.path}")


def test_no_role_is_healthy_in_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    [health] = check(["learner"], RunDirectory(tmp_path / "absent"))
    assert not health.healthy


def test_each_collect_actor_counts(
    directory: RunDirectory, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("collect-actor-0", "env step 9", time=time.time())
    write("collect-actor-3", "env step 9", time=time.time() - 100)
    write("learner", time=time.time())
    assert run_health(["collect-actor"], str(directory.path), None) == 1
    assert [line.split(": ")[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["collect-actor-0", "healthy"],
        ["collect-actor-3", "NOT HEALTHY"],
    ]
    assert run_health(["learner"], str(directory.path), None) == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"time": 3}'])
def test_an_unreadable_heartbeat_is_reported(directory: RunDirectory, write: Write, text: str) -> None:
    directory.heartbeat("learner").write_text(text)
    [health] = check(["learner"], directory, now=NOW)
    assert not health.healthy
    assert "learner.json cannot be read: " in health.why


def test_a_replay_server_that_does_not_answer_is_not_healthy(
    directory: RunDirectory, write: Write, free_port: int
) -> None:
    write("replay-server", "serving")
    address = f"localhost:{free_port}"
    [health] = check(["replay-server"], directory, address, NOW)
    assert health == Health("replay-server", False, f"{address} does not answer (unavailable)")


def test_a_replay_server_that_only_accepts_is_not_healthy(directory: RunDirectory, write: Write) -> None:
    write("replay-server", "serving")
    with socket.create_server(("127.0.0.1", 0)) as server:
        began = time.monotonic()
        [health] = check(["replay-server"], directory, f"127.0.0.1:{server.getsockname()[1]}", NOW)
    assert not health.healthy
    assert time.monotonic() - began < 15


def test_no_answer_is_needed_while_a_checkpoint_is_written(
    directory: RunDirectory, write: Write, free_port: int
) -> None:
    write("replay-server", "writing a checkpoint", patience_s=100.0)
    assert check(["replay-server"], directory, f"localhost:{free_port}", NOW)[0].healthy


def test_only_the_replay_server_has_to_answer(directory: RunDirectory, write: Write, free_port: int) -> None:
    write("learner")
    assert check(ROLES, directory, f"localhost:{free_port}", NOW)[0].healthy


def test_the_command_imports_no_tensorflow(directory: RunDirectory, write: Write) -> None:
    """It runs every few seconds, in every container."""
    write("learner", time=time.time())
    code = (
        "import sys; from actorlearner.cli.main import main; "
        f"code = main(['health', '--role', 'learner', '--run_dir', {str(directory.path)!r}]); "
        "sys.exit(3 if {'tensorflow', 'reverb', 'numpy', 'grpc'} & set(sys.modules) else code)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_learners_of_a_group_are_found_by_their_role(directory: RunDirectory, write: Write) -> None:
    write("learner-1")
    assert check(["learner"], directory, now=NOW) == [Health("learner-1", True, "train step 8, 1 s ago")]
    write("learner")
    assert [health.name for health in check(["learner"], directory, now=NOW)] == ["learner", "learner-1"]
    assert len(check(ROLES, directory, now=NOW)) == 2
