"""A checkpoint holds all that training goes on from."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.agents import dqn
from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.agents.sac import SacConfig
from actorlearner.agents.td3 import Td3Config
from actorlearner.config.schema import AgentConfig, Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.errors import RunError
from actorlearner.learning import settled
from actorlearner.learning.checkpoint import KEPT, LearnerCheckpoint
from actorlearner.learning.group import variables_of
from actorlearner.replay.packed import PackedLayout
from actorlearner.variables.container import EvaluationRequest, PolicyVariables
from tests.support.full_disk import fill, small_disk
from tests.support.harm import corrupt, no_room, truncate
from tests.support.training import (
    DQN,
    SPECS,
    fixed_dataset,
    make_parts,
    make_training_graph,
    values_of,
    with_info,
)

OBSERVATION = tf.TensorSpec([3], tf.float32, "observation")
CONTINUOUS = EnvironmentSpecs(
    OBSERVATION,
    tensor_spec.BoundedTensorSpec([1], tf.float32, -2, 2, "action"),
    time_step.time_step_spec(OBSERVATION),
)
BATCH = 8
STEPS = 12
STOPPED_AT = 5  # Not a train step at which the target network is updated.


def assert_equal(actual: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)


def test_a_new_run_has_nothing_to_restore(tmp_path: Path) -> None:
    parts = make_parts()
    before = values_of(parts)
    LearnerCheckpoint(tmp_path / "checkpoints", parts).restore()
    assert_equal(values_of(parts), before)


def test_resumed_training_equals_uninterrupted_training(tmp_path: Path) -> None:
    uninterrupted = make_parts()
    graph = make_training_graph(tmp_path, uninterrupted, lambda: fixed_dataset(BATCH, STEPS))
    graph.train(STOPPED_AT)
    graph.train(STEPS - STOPPED_AT)

    stopped = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path / "checkpoints", stopped)
    graph = make_training_graph(tmp_path, stopped, lambda: fixed_dataset(BATCH, STEPS))
    graph.train(STOPPED_AT)
    at_stop = values_of(stopped)
    checkpoint.save()

    resumed = make_parts()
    for variable in resumed.policy_variables:
        variable.assign(tf.zeros_like(variable))  # As if the seed were another.
    checkpoint = LearnerCheckpoint(tmp_path / "checkpoints", resumed)
    checkpoint.restore()
    assert int(resumed.train_step) == STOPPED_AT
    graph = make_training_graph(tmp_path, resumed, lambda: fixed_dataset(BATCH, STEPS, skipped=STOPPED_AT))
    checkpoint.check_restored()
    assert any(np.any(at_stop[f"trained/{i}"] != at_stop[f"target/{i}"]) for i in range(4))
    assert {"optimizer/iterations", "optimizer/m/0", "optimizer/v/3"} <= at_stop.keys()
    assert_equal(values_of(resumed), at_stop)
    graph.train(STEPS - STOPPED_AT)
    assert_equal(values_of(resumed), values_of(uninterrupted))


def names_of(parts: AgentParts, directory: Path) -> set[str]:
    """The names of all that a checkpoint of these parts holds."""
    checkpoint = LearnerCheckpoint(directory, parts)
    checkpoint.save()
    return {name for name, _ in tf.train.list_variables(str(directory / "ckpt-0"))}


def restored(directory: Path, agent: AgentConfig, extra: str = "") -> tuple[AgentParts, LearnerCheckpoint]:
    """An agent, perhaps with one more variable, and its checkpoint."""
    parts = make_agent(Config(agent=agent), SPECS if isinstance(agent, DqnConfig) else CONTINUOUS)
    if extra:
        setattr(parts.agent, extra, tf.Variable([1.0, 2.0]))
    checkpoint = LearnerCheckpoint(directory / "checkpoints", parts)
    checkpoint.restore()
    return parts, checkpoint


@pytest.mark.parametrize(
    "agent",
    [
        SacConfig(actor_layers=[4], critic_joint_layers=[4]),
        Td3Config(actor_layers=[4], critic_joint_layers=[4]),
    ],
    ids=lambda agent: agent.name,
)
def test_every_variable_is_saved_and_restored(tmp_path: Path, agent: AgentConfig) -> None:
    parts, checkpoint = restored(tmp_path, agent)
    variables = variables_of(parts.agent)
    for number, variable in enumerate(variables):
        variable.assign(tf.cast(tf.fill(variable.shape, number % 2), variable.dtype))
    checkpoint.save()
    for variable in variables:
        variable.assign(tf.zeros_like(variable))
    checkpoint.restore()
    checkpoint.check_restored()
    assert [bool(np.any(variable)) for variable in variables] == [i % 2 == 1 for i in range(len(variables))]


@pytest.mark.parametrize(
    "agent",
    [
        SacConfig(actor_layers=[4], critic_joint_layers=[4]),
        Td3Config(actor_layers=[4], critic_joint_layers=[4]),
        DQN,
    ],
    ids=lambda agent: agent.name,
)
def test_the_agent_has_all_its_variables_before_it_is_trained(tmp_path: Path, agent: AgentConfig) -> None:
    """A train step that makes variables is traced twice."""
    specs = SPECS if isinstance(agent, DqnConfig) else CONTINUOUS
    parts = make_agent(Config(agent=agent), specs)
    made = names_of(parts, tmp_path / "made")
    layout = PackedLayout(specs, n_step=1, gamma=0.99)
    rows = tf.data.Dataset.from_tensors(layout.format.as_bytes(layout.format.unused(BATCH)))
    make_training_graph(tmp_path, parts, lambda: with_info(rows), layout)
    assert made == names_of(parts, tmp_path / "trained")
    assert sum("OPTIMIZER_SLOT" in name for name in made) > 0


def test_a_variable_missing_in_the_checkpoint_is_refused(tmp_path: Path) -> None:
    restored(tmp_path, DQN)[1].save()
    files = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    with pytest.raises(RunError, match="ckpt-0 was not restored: it does not hold agent/renamed; it is kept"):
        restored(tmp_path, DQN, extra="renamed")
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == files


def test_a_saved_variable_unknown_to_the_agent_is_refused(tmp_path: Path) -> None:
    restored(tmp_path, DQN, extra="former")[1].save()
    _, checkpoint = restored(tmp_path, DQN)
    with pytest.raises(RunError, match="ckpt-0 was not restored: the agent does not have agent/former;"):
        checkpoint.check_restored()


def test_slots_missing_in_the_checkpoint_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without_slots:
        without_slots.setattr(dqn, "create_moments", lambda *_: None)
        LearnerCheckpoint(tmp_path / "checkpoints", make_parts()).save()
    with pytest.raises(RunError, match="ckpt-0 was not restored"):
        restored(tmp_path, DQN)


def test_a_variable_of_another_shape_is_refused(tmp_path: Path) -> None:
    restored(tmp_path, DQN)[1].save()
    with pytest.raises(RunError, match=r"ckpt-0 was not restored: ValueError: .*\(8"):
        restored(tmp_path, dataclasses.replace(DQN, layers=[9]))


def test_slots_created_after_the_restore_get_the_saved_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of an algorithm whose optimiser creates its slots in the first train step."""
    saved = make_parts()
    make_training_graph(tmp_path, saved, lambda: fixed_dataset(BATCH, STEPS)).train(STOPPED_AT)
    LearnerCheckpoint(tmp_path / "checkpoints", saved).save()
    monkeypatch.setattr(dqn, "create_moments", lambda *_: None)
    restored = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path / "checkpoints", restored)
    checkpoint.restore()
    make_training_graph(tmp_path, restored, lambda: fixed_dataset(BATCH, STEPS))
    checkpoint.check_restored()
    assert_equal(values_of(restored), values_of(saved))


def test_a_checkpoint_is_written_again_if_train_steps_were_taken_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a thread that waited for data when the stop came, and then got it."""
    parts = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    parts.train_step.assign(5)
    write = checkpoint._checkpoint.write

    def train_meanwhile(path: str) -> str:
        written: str = write(path)
        if path.endswith("-5"):
            parts.train_step.assign(8)
        return written

    monkeypatch.setattr(checkpoint._checkpoint, "write", train_meanwhile)
    assert checkpoint.save()
    assert sorted(path.name for path in tmp_path.glob("*.seal.json")) == ["ckpt-8.seal.json"]
    assert not list(tmp_path.glob("ckpt-5*"))
    restored = make_parts()
    LearnerCheckpoint(tmp_path, restored).restore()
    assert int(restored.train_step) == 8


@pytest.mark.parametrize(
    ("failed", "settle_s", "why"),
    [(True, 60.0, "a train step failed after the stop"), (False, 0.0, "a train step did not end within 0 s")],
)
def test_a_train_step_that_has_failed_or_does_not_end_is_not_saved(
    failed: bool, settle_s: float, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settled, "_SETTLE_S", settle_s)
    graph: Any = SimpleNamespace(in_train_step=True, failed=failed)
    with pytest.raises(RunError, match=f"{why}.*: nothing was saved since the start"):
        LearnerCheckpoint(tmp_path, make_parts()).save(graph=graph)
    assert not list(tmp_path.glob("*"))


def test_without_a_checkpoint_nothing_is_restored(tmp_path: Path) -> None:
    parts = make_parts()
    parts.train_step.assign(3)
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    checkpoint.restore()
    checkpoint.check_restored()
    assert int(parts.train_step) == 3


def test_a_train_step_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write = tf.train.Checkpoint.write

    def counted_write(self: tf.train.Checkpoint, file_prefix: str) -> str:
        written.append(int(file_prefix.rpartition("-")[2]))
        return write(self, file_prefix)

    monkeypatch.setattr(tf.train.Checkpoint, "write", counted_write)
    parts = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    checkpoint.save()
    checkpoint.save()
    assert written == [0]
    parts.train_step.assign(3)
    checkpoint.save()
    checkpoint.save()
    assert written == [0, 3]
    restored = LearnerCheckpoint(tmp_path, make_parts())
    restored.restore()
    restored.save()
    assert written == [0, 3]


def test_the_newest_is_restored_and_the_oldest_are_removed(tmp_path: Path) -> None:
    parts = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    for train_step in (10, 20, 100, 110, 120):  # 20 comes after 100 by name.
        parts.train_step.assign(train_step)
        checkpoint.save()
    restored = make_parts()
    LearnerCheckpoint(tmp_path, restored).restore()
    assert int(restored.train_step) == 120
    kept = {path.name.split(".")[0] for path in tmp_path.glob("ckpt-*")}
    assert kept == {
        "ckpt-100",
        "ckpt-110",
        "ckpt-120",
    }


def test_pending_evaluations_are_saved_and_restored(tmp_path: Path) -> None:
    parts = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    assert checkpoint.pending_evaluations() == []
    values = [np.full((2, 3), 1.5, np.float32), np.arange(4)]
    requests = [
        EvaluationRequest(
            PolicyVariables(train_step, [value + train_step for value in values]), 2 * train_step
        )
        for train_step in (10, 20)
    ]
    parts.train_step.assign(25)
    checkpoint.begin_generation(published=2)
    checkpoint.save(requests)
    restored = LearnerCheckpoint(tmp_path, make_parts())
    restored.restore()
    restored.begin_generation(published=3)
    assert restored.generation == 4
    for actual, expected in zip(restored.pending_evaluations(), requests, strict=True):
        assert actual.env_steps == expected.env_steps
        assert actual.version.order == (3, expected.version.train_step)
        for value, wanted in zip(actual.version.values, expected.version.values, strict=True):
            np.testing.assert_array_equal(value, wanted, strict=True)
    parts.train_step.assign(30)
    checkpoint.save()
    restored.restore()
    assert restored.pending_evaluations() == []


@pytest.mark.parametrize("harm", [truncate, corrupt, Path.unlink])
@pytest.mark.parametrize("suffix", [".data-00000-of-00001", ".index", ".unevaluated.npz", ".seal.json"])
def test_a_damaged_checkpoint_is_skipped(
    tmp_path: Path, harm: Callable[[Path], None], suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    parts = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    for train_step in (10, 20):
        parts.train_step.assign(train_step)
        checkpoint.save()
    harm(tmp_path / f"ckpt-20{suffix}")
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    checkpoint.restore()
    assert int(parts.train_step) == 10
    if (tmp_path / "ckpt-20.seal.json").exists():
        assert "the checkpoint ckpt-20 is skipped" in caplog.text
    parts.train_step.assign(20)
    assert checkpoint.save()  # In place of the broken one.
    parts.train_step.assign(0)
    LearnerCheckpoint(tmp_path, parts).restore()
    assert int(parts.train_step) == 20


def test_damaged_newer_checkpoints_do_not_evict_complete_ones(tmp_path: Path) -> None:
    parts = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    for train_step in (50, 60, 70):
        parts.train_step.assign(train_step)
        checkpoint.save()
        corrupt(tmp_path / f"ckpt-{train_step}.index")
    restored = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, restored)
    checkpoint.restore()
    assert int(restored.train_step) == 0
    for train_step in (10, 20):
        restored.train_step.assign(train_step)
        assert checkpoint.save()
    truncate(tmp_path / "ckpt-20.index")
    again = make_parts()
    LearnerCheckpoint(tmp_path, again).restore()
    assert int(again.train_step) == 10


def test_leftovers_of_a_killed_learner_are_removed(tmp_path: Path) -> None:
    parts = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    (tmp_path / "ckpt-7_temp").mkdir()
    (tmp_path / "ckpt-7_temp" / "part-00000-of-00001").touch()
    (tmp_path / "ckpt-9.index").touch()
    parts.train_step.assign(10)
    assert checkpoint.save()
    assert {path.name.split(".")[0] for path in tmp_path.glob("ckpt-*")} == {"ckpt-10"}


def test_a_full_disk_keeps_earlier_checkpoints(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    parts = make_parts()
    with small_disk(tmp_path, mebibytes=1) as disk:
        checkpoint = LearnerCheckpoint(disk, parts)
        for train_step in (1, 2, 3):
            parts.train_step.assign(train_step)
            assert checkpoint.save()
        kept = {path.name for path in disk.iterdir()}
        filler = fill(disk)
        for train_step, room in enumerate((0, 4_096, 4_096, 4_096), start=4):
            parts.train_step.assign(train_step)
            os.truncate(filler, filler.stat().st_size - room)
            assert not checkpoint.save()
            assert {path.name for path in disk.iterdir()} == {*kept, "filler"}
        assert checkpoint.describe() == "the checkpoint of train step 3"
        message = f"the disk is full: the checkpoints are not written to {disk} for now"
        assert caplog.text.count(message) == 1
        filler.unlink()
        assert checkpoint.save()
        assert checkpoint.describe() == "the checkpoint of train step 7"


def test_a_failed_seal_keeps_earlier_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    assert checkpoint.save()
    with monkeypatch.context() as patch:
        patch.setattr("actorlearner.learning.checkpoint.seal", no_room)
        for train_step in range(1, 2 + KEPT):
            parts.train_step.assign(train_step)
            assert not checkpoint.save()
    restored = make_parts()
    LearnerCheckpoint(tmp_path, restored).restore()
    assert int(restored.train_step) == 0
    assert {path.name.split(".")[0] for path in tmp_path.glob("*")} == {"ckpt-0"}


def test_each_learner_gets_a_later_generation(tmp_path: Path) -> None:
    """Also where the one before has saved nothing, and where the server knows more than the directory."""
    generations, parts = [], make_parts()
    for published in (-1, -1, 7, -1):
        checkpoint = LearnerCheckpoint(tmp_path / "checkpoints", parts)
        checkpoint.restore()
        checkpoint.begin_generation(published)
        generations.append(checkpoint.generation)
    assert generations == [0, 1, 8, 9]


def test_a_generation_that_cannot_be_recorded_still_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("actorlearner.learning.checkpoint.write_atomically", no_room)
    checkpoint = LearnerCheckpoint(tmp_path, make_parts())
    checkpoint.begin_generation(4)
    assert checkpoint.generation == 5
    assert "the generation of this learner was not recorded: OSError" in caplog.text


@pytest.mark.parametrize(
    "note",
    [b"", b"{", b"[]", b"3", b"{}", b'{"generation": "3"}', b'{"generation": true}', b'{"generation": null}',
     b'{"generation": -7}', b'{"generation": 1e3}', b'{"generation": 99999999999999999999}', b"\xff\xfe"],
)  # fmt: skip
def test_a_damaged_generation_file_skips_generations(
    tmp_path: Path, note: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It may have been that of learners that saved nothing: room is left for them."""
    parts = make_parts()
    checkpoint = LearnerCheckpoint(tmp_path, parts)
    for _ in range(3):
        checkpoint.begin_generation(-1)
    path = tmp_path / "generation.json"
    path.write_bytes(note)
    after = LearnerCheckpoint(tmp_path, parts)
    after.begin_generation(-1)
    assert after.generation > checkpoint.generation
    assert f"{path} cannot be read (" in caplog.text
    caplog.clear()
    following = LearnerCheckpoint(tmp_path, parts)
    following.begin_generation(-1)
    assert following.generation == after.generation + 1
    # TensorFlow logs when the garbage collector meets the restored checkpoint of another test.
    assert not [record for record in caplog.records if record.name.startswith("actorlearner")]


def test_a_directory_in_place_of_the_generation_file_skips_generations(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "generation.json").mkdir()
    checkpoint = LearnerCheckpoint(tmp_path, make_parts())
    checkpoint.begin_generation(5)
    assert checkpoint.generation > 5
    assert "generation.json cannot be read (IsADirectoryError" in caplog.text
    assert "the generation of this learner was not recorded" in caplog.text
