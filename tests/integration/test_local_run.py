"""Local mode that ends before it trains: while replay fills, and when it cannot start."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.records.run_directory import RunDirectory
from tests.support.full_disk import unshare
from tests.support.processes import REPOSITORY, TINY_RUN, Command, marked_processes, records, wait_for

pytestmark = pytest.mark.integration

Start = Callable[..., Command]

_PENDULUM = str(REPOSITORY / "configs" / "td3_pendulum.yaml")


def _local(start: Start, *settings: str, fresh: bool = False) -> Command:
    local = ("-m", "actorlearner", "local", "--config", _PENDULUM, "--run_dir", "run")
    return start(*local, "--set", *TINY_RUN, *settings, fresh=fresh)


@pytest.mark.long
def test_ctrl_c_while_replay_fills_ends_in_time(start: Start, mark: str, tmp_path: Path) -> None:
    command = _local(start, "replay.min_size=100000", "collect.initial_random_steps=100000")
    collected = tmp_path / "run" / "metrics" / "collect-0.jsonl"
    wait_for(lambda: records(collected), "the first env steps")
    began = time.monotonic()
    command.interrupt()
    assert command.finish() == 130, command.err
    assert time.monotonic() - began < 60
    assert marked_processes(mark) == []


def test_a_run_that_cannot_be_written_to_is_not_resumed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.prepare(load_config("td3_pendulum", TINY_RUN))
    read_only = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    arguments = ["-m", "actorlearner", "local", "--config", str(run.config), "--run_dir", str(run.path)]
    result = subprocess.run(
        [*unshare(), "sh", "-c", read_only, str(run.path), sys.executable, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    problem = f"cannot write to the run directory {run.path}: Read-only file system"
    assert result.stderr == f"actorlearner: error: {problem}\n"


def test_a_library_that_cannot_be_loaded_is_named_once(start: Start, mark: str, tmp_path: Path) -> None:
    """It is found by the process that all roles are forked from."""
    (tmp_path / "reverb.py").write_text("raise ImportError('libreverb.so: undefined symbol')")
    command = _local(start, fresh=True)
    assert command.finish() == 1
    assert marked_processes(mark) == []
    error, head, *log = command.err.splitlines()
    why = "exit code 1: ImportError: libreverb.so: undefined symbol"
    assert error == f"actorlearner: error: the roles cannot be started: {why}"
    assert head == f"the last lines of {tmp_path / 'run' / 'logs' / 'fork-server.log'}:"
    assert 1 <= len(log) <= 15
    assert "died" not in command.out
