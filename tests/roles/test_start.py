"""The end of a role's process: its exit code, and the files left in its run directory."""

import subprocess
import sys
from pathlib import Path

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.process.heartbeat import is_overdue, read_heartbeat
from actorlearner.records.run_directory import RunDirectory

_ROLE = """
import sys
from actorlearner.agents.configuration import load_config
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.process.role_process import Verbosity
from actorlearner.roles import start

def run(config, directory, stop):
    assert directory.heartbeat("learner").exists()
    error = eval(sys.argv[2])
    if error is not None:
        raise error

start.stop_tensor_leak = lambda: True  # It imports TensorFlow.
start.import_role = lambda role: run
start.start_role(start.RoleRequest("learner", load_config("td3_pendulum"), {}, sys.argv[1], "experiment", {}))
"""

_REFUSED = "ConfigurationError(['seed: 0 cannot work; allowed: 1'])"


def _run(run_dir: Path, error: str) -> "subprocess.CompletedProcess[str]":
    """Runs a learner by hand that raises `error`, if given."""
    command = [sys.executable, "-c", _ROLE, str(run_dir), error]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, check=False)


def _end(run_dir: Path, error: str) -> int:
    """Runs a learner as `_run` does; returns its exit code."""
    return _run(run_dir, error).returncode


@pytest.mark.parametrize(
    ("error", "code", "is_left"),
    [
        ("None", 0, False),
        ("RunError('the loss is not finite')", 1, False),
        (_REFUSED, 2, False),
        ("ValueError('no such shape')", 1, True),
        ("SystemExit()", 1, True),  # As of a simulator whose window is closed.
    ],
)
def test_only_a_role_that_crashed_leaves_its_heartbeat(
    tmp_path: Path, error: str, code: int, is_left: bool
) -> None:
    assert _end(tmp_path, error) == code
    path = RunDirectory(tmp_path).heartbeat("learner")
    assert path.exists() is is_left
    if is_left:
        assert read_heartbeat(path).doing == "crashed"
        assert is_overdue(path, since=0.0)


def test_a_quiet_role_prints_only_where_its_new_run_directory_is(tmp_path: Path) -> None:
    role = _ROLE.replace("sys.argv[1]", "None").replace("{}))", "{}, Verbosity.QUIET))")
    command = [sys.executable, "-c", role, "", "None"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    (path,) = tmp_path.glob("runs/experiment-*")
    assert done.stdout + done.stderr.partition(" ")[2] == f"learner: run directory: {path}\n"


def test_a_refused_configuration_is_removed_from_the_run_directory(tmp_path: Path) -> None:
    assert _end(tmp_path, _REFUSED) == 2
    directory = RunDirectory(tmp_path)
    assert not directory.config.exists()
    assert "seed: 0 cannot work" in directory.log("learner").read_text()
    directory.prepare(load_config("td3_pendulum", ["seed=1"]))


def test_a_refusal_does_not_remove_the_configuration_of_an_existing_run(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.prepare(load_config("td3_pendulum"))
    assert _end(tmp_path, _REFUSED) == 2
    assert directory.config.exists()


@pytest.mark.parametrize("error", ["None", "RunError('no data')", "ValueError('no such shape')"])
def test_any_other_error_keeps_the_configuration(tmp_path: Path, error: str) -> None:
    _end(tmp_path, error)
    assert RunDirectory(tmp_path).holds_a_run


def test_a_role_that_cannot_write_its_heartbeat_reports_it_on_the_terminal(tmp_path: Path) -> None:
    RunDirectory(tmp_path).heartbeats.touch()  # Fails as a full disk does.
    ended = _run(tmp_path, "None")
    assert ended.returncode == 1
    assert "File exists" in ended.stderr
