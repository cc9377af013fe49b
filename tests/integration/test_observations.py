"""A gymnasium environment with a dict of pixels, numbers and a discrete part, from training to playing."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import camera
from tests.support.processes import TINY_RUN, Command, records

pytestmark = [pytest.mark.integration, pytest.mark.long]


def test_a_run_with_dict_observations_trains_and_plays(start: Callable[..., Command], tmp_path: Path) -> None:
    shutil.copy(camera.__file__, tmp_path / "camera.py")
    (tmp_path / "camera.yaml").write_text(
        "environment: {suite: 'camera:Camera', max_episode_steps: 40}\nagent: {name: sac}\n"
    )
    settings = (
        *("learn.train_steps=200", "collect.actors=1", "environment.info_metrics=[distance, 'sum:distance']"),
        *("evaluate.interval=100", "evaluate.episodes=3", "evaluate.environments=2", "evaluate.max_steps=30"),
    )
    local = ("-m", "actorlearner", "local", "--config", "camera.yaml", "--run_dir", "run")
    trained = start(*local, "--set", *TINY_RUN, *settings)
    assert trained.finish() == 0, trained.err
    evaluations = records(tmp_path / "run" / "metrics" / "eval.jsonl")
    assert [record["train_step"] for record in evaluations] == [0, 100, 200]
    for record in evaluations:
        assert (record["lengths"], record["cut_off"]) == ([30] * 3, 3)
        assert record["info"]["sum:distance"] == pytest.approx([-value for value in record["returns"]])
    collected = records(tmp_path / "run" / "metrics" / "collect-0.jsonl")[-1]
    assert collected["average_info"]["sum:distance"] == pytest.approx(-collected["average_return"])
    assert 0 < collected["average_info"]["distance"] < 3
    played = start("-m", "actorlearner", "rollout", "run", "--episodes", "2")
    assert played.finish() == 0, played.err
    assert len(re.findall(r"Episode #\d: reward: -\d+\.\d+, length: 30, cut off", played.out)) == 2
