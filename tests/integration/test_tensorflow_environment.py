"""A user's environment that uses TensorFlow before any role can configure it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, records

pytestmark = pytest.mark.integration

Start = Callable[..., Command]

_PENDULUM = str(REPOSITORY / "configs" / "sac_pendulum.yaml")


@pytest.mark.long
def test_a_run_trains_and_plays(start: Start, tmp_path: Path) -> None:
    own = str(tmp_path / "own.yaml")
    text = (
        Path(_PENDULUM)
        .read_text()
        .replace("suite: gym\n  name: Pendulum-v1", "suite: tests.support.tensors:make")
    )
    Path(own).write_text(text)
    doctor = start("-m", "actorlearner", "doctor", "--config", own, fresh=True)
    train = start(
        *("-m", "actorlearner", "local", "--config", own, "--run_dir", "run", "--set", *TINY_RUN),
        *("learn.train_steps=100", "evaluate.interval=100", "learn.strategy=mirrored:2", "collect.actors=1"),
        fresh=True,  # As for a user: local mode itself creates a tensor, and its roles are not forks of it.
    )
    assert train.finish() == 0, train.err
    assert (
        train.out.count("takes no seed: its episodes differ") == 2
    )  # Of a collect actor, and the eval actor.
    assert " died: " not in train.out
    assert doctor.finish() == 0, doctor.out
    play = start("-m", "actorlearner", "rollout", "run", "--episodes", "2", fresh=True)
    assert play.finish() == 0, play.err
    assert play.out.count("Episode #") == 2
    assert records(tmp_path / "run" / "metrics" / "eval.jsonl")[-1]["train_step"] == 100


def test_a_module_that_fails_is_refused_by_a_role_before_anything_is_made(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(
        "import tensorflow as tf\ntf.constant(1.0)\nraise ValueError('too bad')\n"
    )
    actor = start(
        *("-m", "actorlearner", "collect-actor", "--config", _PENDULUM, "--run_dir", "run"),
        *("--actor_index", "0", "--replay_address", "localhost:1", "--set", "environment.suite=broken:make"),
    )
    assert actor.finish() == 2
    (line,) = actor.err.splitlines()
    assert line.startswith(
        'actorlearner: error: environment.suite: "broken:make" cannot be loaded: ValueError: too'
    )
    assert not (tmp_path / "run").exists()
