"""A distribution strategy changes how fast is trained, not what is learned."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.processes import REPOSITORY

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("parity")]  # Two processes for all.

STRATEGIES = {"default": 1, "mirrored:2": 2}
"""Their replicas; all divide the script's batch."""

TOLERANCE = {"rtol": 1e-5, "atol": 1e-7}
"""Replicas add the gradients in another order, and Adam divides small ones by their own size."""

Results = dict[str, dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What the script wrote under each strategy; they run side by side."""
    directory = tmp_path_factory.mktemp("parity")
    # One thread in each operation, so that results do not depend on how the work is split.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1", "OMP_NUM_THREADS": "1"}
    running = {
        strategy: subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.learning.parity_script",
                strategy,
                str(output(directory, strategy)),
            ],
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for strategy in STRATEGIES
    }
    for strategy, process in running.items():
        said, _ = process.communicate()
        assert process.returncode == 0, f"{strategy}: {said}"
    return {strategy: dict(np.load(output(directory, strategy))) for strategy in STRATEGIES}


def output(directory: Path, strategy: str) -> Path:
    return directory / f"{strategy.replace(':', '-')}.npz"


def part(result: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    prefix = f"{name}/"
    return {key.removeprefix(prefix): value for key, value in result.items() if key.startswith(prefix)}


@pytest.mark.parametrize(("strategy", "replicas"), STRATEGIES.items())
def test_each_strategy_has_its_replicas(results: Results, strategy: str, replicas: int) -> None:
    assert results[strategy]["replicas"] == replicas
    assert results[strategy]["devices"] == replicas
    assert all(len(copies) in (1, replicas) for copies in part(results[strategy], "copies").values())
    assert len(part(results[strategy], "copies")["trained/0"]) == replicas


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_training_changes_every_variable(results: Results, strategy: str) -> None:
    initial, final = part(results[strategy], "initial"), part(results[strategy], "final")
    assert final["train_step"] == 10
    assert {"trained/0", "target/0"} <= initial.keys() <= final.keys()
    for name in initial:
        assert np.any(initial[name] != final[name]), name
    # The optimiser's state came with the first train step: its count, and two moments of each variable.
    trained = [name for name in final if name.startswith("trained/")]
    assert sum(name.startswith("optimizer/") for name in final) == 1 + 2 * len(trained)


def test_replicas_begin_equal_and_end_equal(results: Results) -> None:
    one, many = results["default"], results["mirrored:2"]
    for name, value in part(one, "initial").items():
        np.testing.assert_array_equal(part(many, "initial")[name], value, err_msg=name)
    assert part(many, "final").keys() == part(one, "final").keys()
    for name, value in part(one, "final").items():
        np.testing.assert_allclose(part(many, "final")[name], value, err_msg=name, **TOLERANCE)
    for name, copies in part(many, "copies").items():
        np.testing.assert_array_equal(copies, np.broadcast_to(copies[:1], copies.shape), err_msg=name)
    np.testing.assert_allclose(many["losses"], one["losses"], rtol=1e-5)


def test_staleness_is_that_of_all_replicas(results: Results) -> None:
    np.testing.assert_allclose(results["mirrored:2"]["staleness"], results["default"]["staleness"])


def test_replicas_go_on_from_a_checkpoint_as_if_they_had_not_stopped(results: Results) -> None:
    final, resumed = (part(results["mirrored:2"], name) for name in ("final", "resumed"))
    assert resumed.keys() == final.keys()
    for name, value in final.items():
        np.testing.assert_allclose(resumed[name], value, err_msg=name, **TOLERANCE)
