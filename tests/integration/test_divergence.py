"""A learner that diverges."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from actorlearner.records.seal import sealed
from tests.support.processes import REPOSITORY, TINY_RUN, Command, records

pytestmark = pytest.mark.integration


def test_a_nan_ends_the_run_and_spoils_neither_policy_nor_checkpoint(
    start: Callable[..., Command], tmp_path: Path
) -> None:
    """Training diverges about 600 train steps after its start, with several checkpoints by then."""
    settings = (
        *("environment.suite=tests.support.exploding:make", "environment.name=''"),
        *("environment.kwargs={harmless_steps: 100}", "collect.actors=1", "collect.envs_per_actor=8"),
        *("learn.train_steps=100000", "learn.checkpoint_interval=100", "evaluate.interval=null"),
    )
    command = start(
        *("-m", "actorlearner", "local", "--config", str(REPOSITORY / "configs" / "td3_pendulum.yaml")),
        *("--run_dir", "run", "--set", *TINY_RUN, *settings),
    )
    assert command.finish() == 1
    assert "learner failed: training has diverged: after train step " in command.err
    assert "Traceback" not in command.err
    run = tmp_path / "run"
    recorded = records(run / "metrics" / "learner.jsonl")
    assert recorded
    assert all(record["loss"] is not None for record in recorded)
    checkpoints = sealed(run / "checkpoints" / "learner")
    assert checkpoints
    _assert_finite(run / "checkpoints" / "learner" / checkpoints[-1])
    for policy in ("policy", "collect_policy", "greedy_policy"):
        _assert_finite(run / "policies" / policy / "variables" / "variables")


def _assert_finite(checkpoint: Path) -> None:
    """Checks that a TensorFlow checkpoint has variables, and every number in it is finite."""
    reader = tf.train.load_checkpoint(str(checkpoint))
    floating = [name for name, dtype in reader.get_variable_to_dtype_map().items() if dtype.is_floating]
    assert floating
    for name in floating:
        assert np.isfinite(reader.get_tensor(name)).all(), name
