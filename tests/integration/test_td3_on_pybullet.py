"""TD3 with n-step returns in an environment of pybullet: as whole runs, which the other tests have not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, records

pytestmark = pytest.mark.integration

_TRAIN_STEPS = 1_000


def _local(start: Callable[..., Command], run: str, train_steps: int, seed: int) -> Command:
    return start(
        *("-m", "actorlearner", "local", "--config", str(REPOSITORY / "configs" / "td3_pendulum.yaml")),
        *("--run_dir", run, "--set", *TINY_RUN, "environment.suite=pybullet", "agent.n_step=3"),
        *("environment.name=InvertedPendulumBulletEnv-v0", "evaluate.episodes=2", "collect.actors=1"),
        *(f"learn.train_steps={train_steps}", f"evaluate.interval={train_steps}", f"seed={seed}"),
    )


def test_it_trains_and_equal_seeds_begin_with_equal_policies(
    start: Callable[..., Command], tmp_path: Path
) -> None:
    runs = {
        "whole": _local(start, "whole", _TRAIN_STEPS, seed=3),
        "same": _local(start, "same", 1, seed=3),
        "other": _local(start, "other", 1, seed=4),
    }
    for command in runs.values():
        assert command.finish() == 0, command.err
    untrained = {}
    for run in runs:
        first, *_, last = records(tmp_path / run / "metrics" / "eval.jsonl")
        assert (first["train_step"], last["train_step"]) == (0, _TRAIN_STEPS if run == "whole" else 1)
        untrained[run] = first["returns"]
    assert untrained["whole"] == untrained["same"] != untrained["other"]

    learner = records(tmp_path / "whole" / "metrics" / "learner.jsonl")
    assert learner[-1]["train_step"] == _TRAIN_STEPS
    for record in learner:
        if record["staleness_max"] is not None:
            assert 0 <= record["staleness_mean"] <= record["staleness_max"] <= record["train_step"], record
    # Batches are drawn from all of replay, which policies of all train steps so far have filled.
    assert 0.3 * _TRAIN_STEPS < learner[-1]["staleness_mean"] < _TRAIN_STEPS
    # n-step transitions overlap: there is still one for each env step.
    assert learner[-1]["env_steps"] == pytest.approx(200 + _TRAIN_STEPS, abs=200)
