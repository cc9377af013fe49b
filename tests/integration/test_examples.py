"""The examples outside of the package, each in a short form."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, Command, records

pytestmark = [pytest.mark.integration, pytest.mark.long]

Start = Callable[..., Command]


@pytest.fixture
def train(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")  # Commands run in tmp_path.

    def train(name: str, *settings: str) -> Path:
        command = start(
            *("-m", "actorlearner", "local", "--config", f"examples/{name}.yaml", "--run_dir", "run"),
            *("--set", *settings),
        )
        assert command.finish() == 0, command.err
        return tmp_path / "run"

    return train


def test_placement(train: Callable[..., Path], start: Start) -> None:
    settings = ("evaluate.interval=60", "evaluate.episodes=2", "collect.envs_per_actor=8")
    run = train("placement", "learn.train_steps=120", *settings)
    first, *_, last = records(run / "metrics" / "eval.jsonl")
    assert last["train_step"] == 120
    assert last["lengths"] == [12, 12]
    assert last["info"]["wirelength"] == pytest.approx([-value for value in last["returns"]])
    assert last["average_return"] > first["average_return"]
    learned = records(run / "metrics" / "learner.jsonl")[-1]
    assert learned["staleness_max"] == 0
    resumed = train("placement", "learn.train_steps=150", *settings)
    assert records(resumed / "metrics" / "eval.jsonl")[-1]["train_step"] == 150
    report = start("-m", "actorlearner", "report", "run")
    assert report.finish() == 0, report.err


def test_building(train: Callable[..., Path]) -> None:
    run = train(
        "building",
        *("learn.train_steps=60", "learn.batch_size=16", "environment.kwargs={step_s: 0.01}"),
        *("replay.min_size=40", "collect.initial_random_steps=40", "collect.envs_per_actor=2"),
        *("evaluate.interval=60", "evaluate.episodes=2", "evaluate.environments=2"),
    )
    last = records(run / "metrics" / "eval.jsonl")[-1]
    assert last["lengths"] == [48, 48]
    assert all(energy > 0 for energy in last["info"]["sum:energy"]) or last["returns"] == [0.0, 0.0]
    (collected,) = records(run / "metrics" / "collect-0.jsonl")[-1:]
    assert collected["faults"] == 0


def test_atari(train: Callable[..., Path]) -> None:
    run = train(
        "atari",
        *("learn.train_steps=40", "learn.batch_size=8", "collect.envs_per_actor=2"),
        *("replay.capacity=2000", "replay.min_size=200", "collect.initial_random_steps=200"),
        *("evaluate.interval=40", "evaluate.episodes=1", "evaluate.max_steps=100"),
    )
    last = records(run / "metrics" / "eval.jsonl")[-1]
    assert last["lengths"] == [100]
    assert last["average_return"] <= 0  # Nobody wins 100 env steps of Pong without training.
