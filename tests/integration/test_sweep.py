"""A sweep of real runs: stopped in the middle of a trial, and continued by the same command."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from actorlearner.agents.configuration import load_config
from tests.support.processes import TINY_RUN, Command, marked_processes, records, wait_for

pytestmark = pytest.mark.integration

_TRAIN_STEPS = 600


def _sweep(start: Callable[..., Command]) -> Command:
    return start(
        *("-m", "actorlearner", "sweep", "--config", "td3_pendulum", "--space", "space.yaml"),
        *("--trials", "2", "--sweep_dir", "sweep", "--set", *TINY_RUN),
        *(f"learn.train_steps={_TRAIN_STEPS}", "evaluate.interval=200", "learn.checkpoint_interval=100"),
    )


@pytest.mark.long
def test_a_sweep_is_stopped_in_a_trial_and_continues_it(
    start: Callable[..., Command], mark: str, tmp_path: Path
) -> None:
    (tmp_path / "space.yaml").write_text("agent.gamma: {low: 0.9, high: 0.99}\n")
    second = tmp_path / "sweep" / "trials" / "1" / "seed-0"
    command = _sweep(start)
    learner = second / "metrics" / "learner.jsonl"
    wait_for(lambda: any(record["train_step"] > 0 for record in records(learner)), "the second trial")
    command.interrupt()
    assert command.finish() == 130, command.out + command.err
    assert "stopped after 1 of 2 trials; the same command with --sweep_dir continues" in command.out
    assert marked_processes(mark) == []

    command = _sweep(start)
    assert command.finish() == 0, command.out + command.err
    assert command.out.splitlines()[-1] == "2 trials complete, 0 pruned"
    events = [json.loads(line)["event"] for line in (second / "events.jsonl").read_text().splitlines()]
    assert events[0] == "run began"
    assert "run resumed" in events
    evaluated = [record["train_step"] for record in records(second / "metrics" / "eval.jsonl")]
    assert evaluated == [0, 200, 400, 600]
    best = load_config(str(tmp_path / "sweep" / "best.yaml"))
    assert 0.9 <= best.agent.gamma <= 0.99
    assert marked_processes(mark) == []
