"""A distribution strategy changes how fast is trained, not what is learned."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from actorlearner.process.spawn import die_with_parent
from tests.support.ports import unused_port
from tests.support.processes import REPOSITORY

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

GROUP = "multi_worker_mirrored"
REPLICAS = {"default": 1, "mirrored:2": 2, GROUP: 2}
"""Of each strategy; all divide the script's batch."""

LOCAL = {"default": 1, "mirrored:2": 2, GROUP: 1}
"""The replicas of one process."""

AGENTS = ("dqn", "sac")
MANY = ("mirrored:2", GROUP)

TOLERANCE = {"rtol": 2e-5, "atol": 2e-6}
"""Replicas add the gradients in another order, and Adam divides small ones by their own size."""

Results = dict[str, dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the script wrote under each strategy; they run side by side. Of a group's, the second has a 1."""
    directory = tmp_path_factory.mktemp("parity")
    # One thread in each operation, so that results do not depend on how the work is split.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1", "OMP_NUM_THREADS": "1"}
    cluster = {"worker": [f"localhost:{unused_port()}" for _ in range(2)]}
    runs = [("default", "default", {}), ("mirrored:2", "mirrored:2", {})]
    for index, name in enumerate((GROUP, f"{GROUP}-1")):
        task = {"type": "worker", "index": index}
        runs.append((name, GROUP, {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}))
    running = {
        name: subprocess.Popen(
            [sys.executable, "-m", "tests.learning.parity_script", strategy, str(output(directory, name))],
            cwd=REPOSITORY,
            env=environment | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=functools.partial(die_with_parent, os.getpid()),
        )
        for name, strategy, more in runs
    }
    try:
        for name, process in running.items():
            printed, _ = process.communicate()
            assert process.returncode == 0, f"{name}: {printed}"
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    return {name: dict(np.load(output(directory, name))) for name in running}


def output(directory: Path, name: str) -> Path:
    return directory / f"{name.replace(':', '-')}.npz"


def part(result: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    prefix = f"{name}/"
    return {key.removeprefix(prefix): value for key, value in result.items() if key.startswith(prefix)}


def assert_close(actual: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, err_msg=name, **TOLERANCE)


def assert_equal(actual: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)


@pytest.mark.parametrize("strategy", REPLICAS)
def test_each_strategy_has_its_replicas(results: Results, strategy: str) -> None:
    found = part(results[strategy], "dqn")
    assert found["replicas"] == REPLICAS[strategy]
    local = LOCAL[strategy]
    assert all(len(copies) in (1, local) for copies in part(found, "copies").values())
    assert len(part(found, "copies")["trained/0"]) == local


@pytest.mark.parametrize("strategy", REPLICAS)
def test_training_changes_every_variable(results: Results, strategy: str) -> None:
    found = part(results[strategy], "dqn")
    initial, final = part(found, "initial"), part(found, "final")
    assert final["train_step"] == 20
    assert {"trained/0", "target/0"} <= initial.keys() <= final.keys()
    for name in initial:
        assert np.any(initial[name] != final[name]), name
    # The optimiser's state came with the first train step: its count, and two moments of each variable.
    trained = [name for name in final if name.startswith("trained/")]
    assert sum(name.startswith("optimizer/") for name in final) == 1 + 2 * len(trained)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("strategy", MANY)
def test_replicas_train_to_the_same_variables_as_one_replica(
    results: Results, strategy: str, agent: str
) -> None:
    one, many = (part(results[name], agent) for name in ("default", strategy))
    assert_equal(part(many, "initial"), part(one, "initial"))
    assert len(part(one, "final")) > 10
    assert_close(part(many, "final"), part(one, "final"))
    for name, copies in part(many, "copies").items():
        np.testing.assert_array_equal(copies, np.broadcast_to(copies[:1], copies.shape), err_msg=name)
    np.testing.assert_allclose(many["losses"], one["losses"], rtol=1e-4)


@pytest.mark.parametrize("agent", AGENTS)
def test_learners_of_a_group_have_the_same_variables_and_losses(results: Results, agent: str) -> None:
    chief, other = (part(results[name], agent) for name in (GROUP, f"{GROUP}-1"))
    for name in ("initial", "final", "resumed"):
        assert_equal(part(other, name), part(chief, name))
    np.testing.assert_array_equal(other["losses"], chief["losses"])


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("name", [GROUP, f"{GROUP}-1"])
def test_no_learner_changes_a_variable_before_all_have_their_data(
    results: Results, name: str, agent: str
) -> None:
    """So that the chief can complete a checkpoint while another learner waits."""
    found = part(results[name], agent)
    assert len(part(found, "stopped")) > 10
    assert_close(part(found, "starved"), part(found, "stopped"))


def test_staleness_covers_all_replicas(results: Results) -> None:
    one, many = (part(results[name], "dqn") for name in ("default", "mirrored:2"))
    np.testing.assert_allclose(many["staleness"], one["staleness"])


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("strategy", MANY)
def test_resumed_replicas_end_equal_to_an_uninterrupted_run(
    results: Results, strategy: str, agent: str
) -> None:
    found = part(results[strategy], agent)
    assert_close(part(found, "resumed"), part(found, "final"))
