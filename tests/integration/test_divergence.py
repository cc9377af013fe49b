"""A learner that diverges."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.support.processes import REPOSITORY, TINY_RUN, Command, records

pytestmark = pytest.mark.integration


def test_a_nan_ends_the_run_and_spoils_neither_policy_nor_checkpoint(
    start: Callable[..., Command], tmp_path: Path
) -> None:
    settings = (
        "learn.train_steps=2000",
        "learn.checkpoint_interval=10",
        "agent.critic_learning_rate=1.0e+20",
    )
    command = start(
        *("-m", "actorlearner", "local", "--config", str(REPOSITORY / "configs" / "sac_pendulum.yaml")),
        *("--run_dir", "run", "--set", *TINY_RUN, *settings),
    )
    assert command.finish() == 1
    assert "learner failed: training has diverged: after train step " in command.err
    assert "Traceback" not in command.err
    run = tmp_path / "run"
    assert all(record["loss"] is not None for record in records(run / "metrics" / "learner.jsonl"))
    newest = tf.train.latest_checkpoint(str(run / "checkpoints" / "learner"))
    policy = run / "policies" / "greedy_policy" / "variables" / "variables"  # Unless it diverged before that.
    exported = str(policy) if policy.with_suffix(".index").exists() else None
    for prefix in filter(None, [exported, newest]):
        reader = tf.train.load_checkpoint(prefix)
        for name, dtype in reader.get_variable_to_dtype_map().items():
            assert not dtype.is_floating or np.isfinite(reader.get_tensor(name)).all(), name
