"""A run without evaluation, from training to playing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import TINY_RUN, Command

pytestmark = [pytest.mark.integration, pytest.mark.long]


def test_it_trains_resumes_and_plays_its_greedy_policy(start: Callable[..., Command], tmp_path: Path) -> None:
    for train_steps in (100, 200):
        run = start(
            *("-m", "actorlearner", "local", "--config", "td3_pendulum", "--run_dir", "run", "--set"),
            *(*TINY_RUN, f"learn.train_steps={train_steps}", "evaluate.interval=null", "collect.actors=1"),
        )
        assert run.finish() == 0, run.err
        assert "AverageReturn  evaluation is off\n" in run.out
    assert not (tmp_path / "run" / "metrics" / "eval.jsonl").exists()
    assert not (tmp_path / "run" / "policies" / "best").exists()
    played = start("-m", "actorlearner", "rollout", "run", "--episodes", "1")
    assert played.finish() == 0, played.err
    assert "policies/greedy_policy, train step 200, " in played.out
