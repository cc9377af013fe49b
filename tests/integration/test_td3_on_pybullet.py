"""TD3 with n-step returns in an environment of pybullet: as whole runs, which the other tests have not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, records

pytestmark = pytest.mark.integration

_TRAIN_STEPS = 1_000


def test_it_trains(start: Callable[..., Command], tmp_path: Path) -> None:
    command = start(
        *("-m", "actorlearner", "local", "--config", str(REPOSITORY / "configs" / "td3_pendulum.yaml")),
        *("--run_dir", "run", "--set", *TINY_RUN, "environment.suite=pybullet", "agent.n_step=3"),
        *("environment.name=InvertedPendulumBulletEnv-v0", "collect.actors=1"),
        *(f"learn.train_steps={_TRAIN_STEPS}", f"evaluate.interval={_TRAIN_STEPS}"),
    )
    assert command.finish() == 0, command.err
    evaluations = records(tmp_path / "run" / "metrics" / "eval.jsonl")
    assert [record["train_step"] for record in evaluations] == [0, _TRAIN_STEPS]
    learner = records(tmp_path / "run" / "metrics" / "learner.jsonl")
    assert learner[-1]["train_step"] == _TRAIN_STEPS
    for record in learner:
        if record["staleness_max"] is not None:
            assert 0 <= record["staleness_mean"] <= record["staleness_max"] <= record["train_step"], record
    # Batches are drawn from all of replay, which policies of all train steps so far have filled.
    assert 0.3 * _TRAIN_STEPS < learner[-1]["staleness_mean"] < _TRAIN_STEPS
    # n-step transitions overlap: there is still one for each env step.
    assert learner[-1]["env_steps"] == pytest.approx(200 + _TRAIN_STEPS, abs=200)
