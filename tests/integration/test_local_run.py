"""Local mode with all its processes: it trains, ends by itself, and leaves nothing behind."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.network.private_network import PrivateNetwork, RefusedError
from actorlearner.records.run_directory import RunDirectory
from tests.support.full_disk import unshare
from tests.support.ports import unused_port
from tests.support.processes import REPOSITORY, TINY_RUN, Command, marked_processes, records, wait_for
from tests.support.reachable import is_reachable
from tests.support.scrape import scrape

pytestmark = pytest.mark.integration

Start = Callable[..., Command]

_PENDULUM = str(REPOSITORY / "configs" / "td3_pendulum.yaml")


def _local(start: Start, *settings: str, flags: Sequence[str] = (), fresh: bool = False) -> Command:
    return start(
        *("-m", "actorlearner", "local", "--config", _PENDULUM, "--run_dir", "run", *flags),
        *("--set", *TINY_RUN, *settings),
        fresh=fresh,
    )


def _may_be_private() -> bool:
    try:
        PrivateNetwork().close()
    except RefusedError:
        return False
    return True


def _status(run: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "actorlearner", "status", str(run), "--json"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    status: dict[str, Any] = json.loads(completed.stdout)
    return status


def test_a_run_is_watched_and_ctrl_c_saves_and_leaves_nothing(
    start: Start, mark: str, tmp_path: Path
) -> None:
    """A train step takes much less than the 160 ms of eight of its env steps."""
    slow = ("environment.suite=tests.support.burdens:make", "environment.name=''")
    burden = ("environment.kwargs={wait_s: 0.02}", "environment.max_episode_steps=20")
    more = ("learn.train_steps=1000000", "evaluate.interval=100000", "collect.initial_random_steps=0")
    port = unused_port()
    command = _local(start, *slow, *burden, *more, flags=["--verbose", "--metrics_port", str(port)])
    run = tmp_path / "run"
    wait_for(lambda: len(records(run / "metrics" / "learner.jsonl")) >= 4, "training")
    during = _status(run)
    assert during["state"] == "running"
    assert [each["name"] for each in during["bottlenecks"]] == ["environments"], during["waits"]
    assert {role["name"] for role in during["roles"]} >= {"learner", "replay-server", "collect-actor-0"}
    scraped = scrape(port)
    assert (
        min(scraped["actorlearner_learner_train_step"], scraped["actorlearner_collect_env_steps_total/0"]) > 0
    )
    reachable = is_reachable(run)
    assert len(marked_processes(mark)) == 6
    began = time.monotonic()
    command.interrupt()
    assert command.finish() == 130, command.err
    assert time.monotonic() - began < 15
    assert marked_processes(mark) == []
    assert list((tmp_path / "temporary").iterdir()) == []
    checkpoints = (run / "checkpoints" / "learner").glob("*.index")
    saved = [int(path.stem.removeprefix("ckpt-")) for path in checkpoints]
    assert max(saved) == records(run / "metrics" / "learner.jsonl")[-1]["train_step"]
    stopped = f"stopped at train step {max(saved):,}; saved: train step {max(saved):,}, with "
    assert stopped in command.out
    expected = (
        "network: the replay server's port is open" if reachable else "network: private; nothing outside"
    )
    assert expected in command.out
    assert not (reachable and _may_be_private())
    assert "bottleneck     environments: the actors step environments " in command.out
    after = _status(run)
    assert (after["state"], after["roles"], after["env_steps_per_s"]) == ("not running", [], 0)
    assert [each["name"] for each in after["bottlenecks"]] == ["environments"], after["waits"]
    assert command.err == ""
    printed = command.out.splitlines()
    for role in ("replay-server", "collect-actor-0", "eval-actor", "learner"):
        logged = (run / "logs" / f"{role}.log").read_text().splitlines()
        assert [line for line in printed if line.startswith(f"{role} | ")] == [
            f"{role} | {x}" for x in logged
        ]


@pytest.mark.long
def test_ctrl_c_while_replay_fills_ends_in_time(start: Start, mark: str, tmp_path: Path) -> None:
    command = _local(start, "replay.min_size=100000", "collect.initial_random_steps=100000")
    collected = tmp_path / "run" / "metrics" / "collect-0.jsonl"
    wait_for(lambda: records(collected), "the first env steps")
    began = time.monotonic()
    command.interrupt()
    assert command.finish() == 130, command.err
    assert time.monotonic() - began < 15
    assert marked_processes(mark) == []


def test_a_run_of_another_configuration_is_refused(start: Start, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text((REPOSITORY / "configs" / "td3_pendulum.yaml").read_text())
    command = _local(start)
    assert command.finish() == 2
    lines = command.err.splitlines()
    assert len(lines) == len(TINY_RUN)
    assert all("holds a run of another configuration: " in line for line in lines)


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
