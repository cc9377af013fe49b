"""Profiles: which train steps are in them, as TensorBoard's plugin would read them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.profiler.protobuf import xplane_pb2

from actorlearner.agents.configuration import load_config
from actorlearner.config.schema import Config, EvaluateConfig, LearnConfig
from actorlearner.errors import ConfigurationError
from actorlearner.learning.group import LearnerGroup
from actorlearner.learning.profiler import Profiler
from actorlearner.learning.training_loop import train
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from tests.support.training import fixed_dataset, make_parts, make_training_graph


def events(directory: Path) -> set[str]:
    """The names of all that is in the profiles of a directory."""
    names = set()
    for path in directory.glob("plugins/profile/*/*.xplane.pb"):
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
        names |= {metadata.name for plane in space.planes for metadata in plane.event_metadata.values()}
    return names


def test_the_requested_train_steps_are_profiled(tmp_path: Path) -> None:
    learn = LearnConfig(
        train_steps=20, batch_size=6, publish_interval=20, checkpoint_interval=20, profile="7,12"
    )
    config = Config(learn=learn, evaluate=EvaluateConfig(interval=1_000))
    graph = make_training_graph(tmp_path / "learner", make_parts(), lambda: fixed_dataset(6, 20))
    profiler = Profiler("7,12", tmp_path)
    profiler.update(0)
    calls: list[int] = []

    def after_call(train_step: int, loss: Any) -> None:
        calls.append(train_step)
        profiler.update(train_step)

    outputs: Any = SimpleNamespace(after_call=after_call, after_training=lambda: None)
    train(config, LearnerGroup(tf.distribute.get_strategy(), Stop()), graph, outputs, StartupTimer())
    assert calls == [7, 12, 20]  # Otherwise ten train steps would be one call.
    assert any("MatMul" in name for name in events(tmp_path))


@pytest.mark.parametrize(
    ("profile", "starts", "ends"),
    [("10,12", 8, 16), ("8,16", 8, 16), ("7,9", 0, 16), ("0,1", 0, 8), ("15,17", 8, 24)],
)
def test_a_profile_contains_the_iterations_of_its_train_steps(
    profile: str, starts: int, ends: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On-policy, a call of the training graph is a whole iteration: eight train steps here."""
    now, done = 0, []
    monkeypatch.setattr(tf.profiler.experimental, "start", lambda directory: done.append(now))
    monkeypatch.setattr(tf.profiler.experimental, "stop", lambda: done.append(now))
    profiler = Profiler(profile, tmp_path)
    for now in range(0, 40, 8):
        profiler.update(now, next_call=8)
    assert done == [starts, ends]


def test_a_profile_that_ends_early_is_written(tmp_path: Path) -> None:
    profiler = Profiler("0,1000", tmp_path)
    profiler.update(0)
    tf.linalg.matmul(tf.ones([2, 2]), tf.ones([2, 2]))
    assert events(tmp_path) == set()
    profiler.end()
    assert events(tmp_path)
    profiler.end()  # Nothing is left to end.


def test_a_profile_that_cannot_begin_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # TensorFlow takes one profile at a time in a process.
    first, second = Profiler("0,1000", tmp_path / "first"), Profiler("0,1000", tmp_path / "second")
    first.update(0)
    second.update(0)
    second.update(10)
    tf.linalg.matmul(tf.ones([2, 2]), tf.ones([2, 2]))
    second.end()
    first.end()
    assert events(tmp_path / "first")
    assert not events(tmp_path / "second")
    assert caplog.text.count("there will be no profile (learn.profile): ") == 1


@pytest.mark.parametrize("profile", ["10", "10,10", "20,10", "-1,3", "1,2,3", "a,b", ""])
def test_an_invalid_profile_range_is_refused(profile: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_config("sac_pendulum", [f"learn.profile={profile!r}"])
    (problem,) = refused.value.problems
    assert problem.startswith("learn.profile: ")
    assert "allowed: START,STOP, as in 1000,1100, or null" in problem


def test_a_profile_on_the_command_line_needs_no_quotes() -> None:
    assert load_config("sac_pendulum", ["learn.profile=1000,1100"]).learn.profile == "1000,1100"
