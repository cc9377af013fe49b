"""A Ray cluster that cannot be reached; tests/integration/test_ray.py has one that can."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY

_DEADLINE_S = 90.0


@pytest.mark.parametrize("address", ["foo", "127.0.0.1:{port}"])
def test_an_address_without_a_cluster_is_refused(address: str, tmp_path: Path, free_port: int) -> None:
    arguments = (
        "--config",
        "sac_pendulum",
        "--collect_actors",
        "1",
        "--address",
        address.format(port=free_port),
    )
    process = subprocess.run(
        [sys.executable, "-m", "actorlearner", "ray", *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=_DEADLINE_S,
    )
    assert process.returncode == 2
    assert "; allowed: auto or the HOST:PORT of a Ray cluster with this node; " in process.stderr
    assert not list(tmp_path.iterdir())
