"""Saved policies act as the agent's do, without this package."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tf_agents.policies import policy_saver
from tf_agents.trajectories import time_step

from actorlearner.agents.make import AgentParts
from actorlearner.agents.precision import use_bfloat16
from actorlearner.config.schema import Config
from actorlearner.learning.policy_export import PolicyExport
from actorlearner.records.policy_directory import PolicyDirectory
from tests.support.full_disk import fill, small_disk
from tests.support.saved_variables import saved_variables
from tests.support.training import DQN, make_parts

CONFIG = Config(agent=DQN)
NAMES = ["collect_policy", "greedy_policy", "policy"]


def actions(policy: Any, batch: int = 64) -> np.ndarray:
    observation = np.random.default_rng(1).normal(size=(batch, 4)).astype(np.float32)
    return policy.action(time_step.restart(tf.constant(observation), batch)).action.numpy()


def change(parts: AgentParts, train_step: int) -> None:
    random = np.random.default_rng(train_step)
    for variable in parts.policy_variables:
        variable.assign(random.normal(size=variable.shape).astype(np.float32))
    parts.train_step.assign(train_step)


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def check_saved(directory: Path, parts: AgentParts, names: Sequence[str] = NAMES) -> None:
    expected = actions(parts.agent.policy)
    assert len(set(expected)) > 1
    for name in names:  # The agent collects without exploring, so all three act the same.
        saved = tf.saved_model.load(str(directory / name))
        np.testing.assert_array_equal(actions(saved), expected, err_msg=name)
        np.testing.assert_array_equal(actions(saved, 1), actions(parts.agent.policy, 1), err_msg=name)
        assert int(saved.get_train_step()) == int(parts.train_step)


@pytest.fixture
def full_saves(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that a saver has written a complete SavedModel to."""
    paths = []
    save = policy_saver.PolicySaver.save

    def recorded_save(self: policy_saver.PolicySaver, path: str, *args: Any, **kwargs: Any) -> None:
        paths.append(path)
        save(self, path, *args, **kwargs)

    monkeypatch.setattr(policy_saver.PolicySaver, "save", recorded_save)
    return paths


def dtypes_of_products(saved_model: Path) -> set[int]:
    graph = saved_model_pb2.SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    (meta_graph,) = graph.meta_graphs
    functions = meta_graph.graph_def.library.function
    return {node.attr["T"].type for f in functions for node in f.node_def if node.op == "MatMul"}


def test_policies_of_a_bfloat16_learner_are_saved_in_float32(tmp_path: Path) -> None:
    parts = make_parts()
    change(parts, 1)
    expected = actions(parts.agent.policy)
    use_bfloat16(parts.agent)
    assert PolicyExport(tmp_path, parts, CONFIG).save()
    for name in NAMES:
        assert dtypes_of_products(tmp_path / name) == {tf.float32.as_datatype_enum}
    np.testing.assert_array_equal(actions(tf.saved_model.load(str(tmp_path / "policy"))), expected)


def test_saved_policies_are_replaced_by_newer_ones(tmp_path: Path, full_saves: list[str]) -> None:
    directory = tmp_path / "policies"
    parts = make_parts()
    change(parts, 7)
    export = PolicyExport(directory, parts, CONFIG)
    assert not directory.exists()
    export.save()
    check_saved(directory, parts)
    before = actions(parts.agent.policy)
    change(parts, 20)
    export.save()
    check_saved(directory, parts)
    written = (directory / "policy").stat().st_ino
    assert export.save()
    assert (directory / "policy").stat().st_ino == written  # These are saved already.
    assert np.any(before != actions(parts.agent.policy))
    assert len(full_saves) == len(NAMES)  # The second time, variables only.
    assert sorted(path.name for path in directory.iterdir()) == NAMES
    # A run that is resumed replaces what the run before it has left, killed while it saved.
    (directory / "policy").rename(directory / ".policy.old")
    (directory / ".policy.new" / "variables").mkdir(parents=True)
    change(parts, 40)
    resumed = PolicyDirectory(directory / "policy", parts.agent.policy, parts.train_step, CONFIG)
    resumed.prepare({})
    resumed.replace()
    check_saved(directory, parts, ["policy"])
    assert sorted(path.name for path in directory.iterdir()) == NAMES


def test_two_threads_do_not_save_at_the_same_time(tmp_path: Path) -> None:
    parts = make_parts()
    export = PolicyExport(tmp_path, parts, CONFIG)
    saving: list[int] = []
    began, go_on = threading.Event(), threading.Event()

    def prepare(extras: object) -> None:
        saving.append(int(parts.train_step))
        began.set()
        assert go_on.wait(60)

    export._policies = [cast(Any, SimpleNamespace(prepare=prepare, replace=lambda: None))]
    first = threading.Thread(target=export.save)
    first.start()
    assert began.wait(60)
    parts.train_step.assign(5)
    second = threading.Thread(target=export.save)
    second.start()
    second.join(0.3)
    assert saving == [0]
    go_on.set()
    for thread in (first, second):
        thread.join(60)
    assert saving == [0, 5]


def test_saved_policies_never_mix_two_train_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data comes while a stop's policies are written, and the train step outlasts the first write."""
    parts = make_parts()
    change(parts, 7)
    export = PolicyExport(tmp_path, parts, CONFIG)
    assert export.save()
    change(parts, 20)
    graph: Any = SimpleNamespace(in_train_step=False, failed=False)
    save = policy_saver.PolicySaver.save_checkpoint

    def train_meanwhile(self: policy_saver.PolicySaver, path: str) -> None:
        if int(parts.train_step) == 20 and not graph.in_train_step:
            parts.policy_variables[0].assign(tf.zeros_like(parts.policy_variables[0]))
            graph.in_train_step = True
            threading.Timer(0.3, end_the_train_step).start()
        save(self, path)

    def end_the_train_step() -> None:
        change(parts, 21)
        graph.in_train_step = False

    monkeypatch.setattr(policy_saver.PolicySaver, "save_checkpoint", train_meanwhile)
    assert export.save(graph)
    assert not graph.in_train_step
    check_saved(tmp_path, parts)


def test_a_full_disk_keeps_earlier_policies(tmp_path: Path) -> None:
    parts = make_parts()
    change(parts, 7)
    with small_disk(tmp_path, mebibytes=4) as disk:
        filler = fill(disk)
        export = PolicyExport(disk / "policies", parts, CONFIG)
        assert not export.begun
        assert not export.save()
        assert export.begun
        filler.unlink()
        assert export.save()
        saved = {name: contents(disk / "policies" / name) for name in NAMES}
        change(parts, 20)
        filler = fill(disk)
        for room in (0, 8_192, 40_960):  # Nothing fits, or the first files do.
            os.truncate(filler, filler.stat().st_size - room)
            assert not export.save()
            for name in NAMES:
                found = contents(disk / "policies" / name)
                assert found.keys() == saved[name].keys()
                # Those of train step 7, or complete ones that fit.
                assert found == saved[name] or saved_variables(disk / "policies" / name)["train_step"] == 20
            assert sorted(path.name for path in (disk / "policies").iterdir()) == NAMES
        filler.unlink()
        assert export.save()
        check_saved(disk / "policies", parts)
