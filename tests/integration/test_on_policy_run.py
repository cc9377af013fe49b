"""PPO with all roles: it learns, also when the learner and an actor are killed in mid-run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, Command, kill_role, records, saved_train_step, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.long]

_ITERATION = 80
"""Train steps in an iteration of the shipped configuration."""


def test_it_solves_cartpole_though_the_learner_and_an_actor_are_killed(
    start: Callable[..., Command], tmp_path: Path, mark: str
) -> None:
    settings = ("learn.checkpoint_interval=400", "evaluate.episodes=5", "evaluate.interval=400")
    config = str(REPOSITORY / "configs" / "ppo_cartpole.yaml")
    command = start(
        "-m", "actorlearner", "local", "--config", config, "--run_dir", "run", "--set", *settings, fresh=True
    )
    run = tmp_path / "run"
    # Evaluations may come much later than their train steps, when training has ended.
    wait_for(lambda: saved_train_step(run) >= 800, "train step 800")
    kill_role(mark, "collect-actor-1")
    wait_for(lambda: saved_train_step(run) >= 1_600, "train step 1,600")
    kill_role(mark, "learner")
    assert command.finish() == 0, command.err
    last = records(run / "metrics" / "eval.jsonl")[-1]
    assert last["train_step"] == 4_000
    assert last["average_return"] >= 475
    learned = records(run / "metrics" / "learner.jsonl")
    assert all(record["staleness_max"] in (0, None) for record in learned)
    assert all(record["train_step"] % _ITERATION == 0 for record in learned)
