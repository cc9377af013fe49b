"""Environments that fail in a complete run: the run survives some faults, and the others are reported."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, records

pytestmark = pytest.mark.integration

Start = Callable[..., Command]

_PENDULUM = str(REPOSITORY / "configs" / "td3_pendulum.yaml")


def _local(start: Start, faults: int, *settings: str) -> Command:
    return start(
        *("-m", "actorlearner", "local", "--config", _PENDULUM, "--run_dir", "run", "--set", *TINY_RUN),
        *("environment.suite=tests.support.faulty:make", "environment.name=''"),
        *(f"environment.kwargs={{faults: {faults}}}", "environment.max_episode_steps=200"),
        *("learn.train_steps=1000", "evaluate.interval=500", *settings),
    )


def test_a_run_survives_faults_and_counts_them(start: Start, tmp_path: Path) -> None:
    command = _local(start, 9)
    assert command.finish() == 0, command.err
    run = tmp_path / "run"
    assert records(run / "metrics" / "collect-0.jsonl")[-1]["faults"] == 9
    assert "faults         9 of environments" in command.out
    log = (run / "logs" / "collect-actor-0.log").read_text()
    assert "environment 0: step raised FloatingPointError: the pendulum came off" in log
    assert all(math.isfinite(record["loss"]) for record in records(run / "metrics" / "learner.jsonl"))
    evaluations = records(run / "metrics" / "eval.jsonl")
    assert [record["lengths"] for record in evaluations] == [[200]] * 3
    assert all(math.isfinite(record["average_return"]) for record in evaluations)
    assert (run / "logs" / "eval-actor.log").read_text().count("the environment is replaced") == 9


@pytest.mark.long
def test_an_environment_that_always_fails_ends_the_run_and_is_named(start: Start) -> None:
    command = _local(start, 1_000_000, "environment.max_faults=4")
    assert command.finish() == 1
    assert "environment 0 failed 5 times in a row (environment.max_faults: 4), most recently: " in command.err
    assert "Traceback" not in command.err
