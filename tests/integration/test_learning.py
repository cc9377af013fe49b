"""Trains the shipped configurations, and checks the return of the greedy policy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, Command, records

pytestmark = [pytest.mark.learning, pytest.mark.integration, pytest.mark.timeout(3_000)]

_LONGEST_S = 2_400.0

_CASES = {
    # Configuration, train steps, and the return to reach: well below what all seeds of the README have, and
    # far above an untrained policy's (-1200, 20 on CartPole).
    "sac_pendulum": ("sac_pendulum", 10_000, -250.0),
    "td3_pendulum": ("td3_pendulum", 12_000, -250.0),
    "dqn_cartpole": ("dqn_cartpole", 50_000, 400.0),
    "ppo_pendulum": ("ppo_pendulum", 4_800, -250.0),
}


@pytest.mark.parametrize(("config", "train_steps", "reach"), _CASES.values(), ids=_CASES)
def test_the_greedy_policy_reaches_its_return(
    start: Callable[..., Command], tmp_path: Path, config: str, train_steps: int, reach: float
) -> None:
    command = start(
        *("-m", "actorlearner", "local", "--config", str(REPOSITORY / "configs" / f"{config}.yaml")),
        *("--run_dir", "run", "--set", f"learn.train_steps={train_steps}"),
    )
    assert command.finish(_LONGEST_S) == 0, command.err
    evaluations = {
        record["train_step"]: record["average_return"]
        for record in records(tmp_path / "run" / "metrics" / "eval.jsonl")
    }
    print(f"\n{config}: {evaluations}")
    first, *_, before, last = (evaluations[train_step] for train_step in sorted(evaluations))
    assert max(evaluations) == train_steps
    # One evaluation may fall on a bad policy; two in a row do not.
    assert first < reach < max(before, last), evaluations
