"""Every benchmark in a small size: it runs through, and gives a figure for each row."""

import json
import math
import subprocess
import sys
from typing import Any

import pytest

from benchmarks import gpu
from benchmarks.__main__ import NAMES
from tests.support.processes import REPOSITORY

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

_SIZES: dict[str, dict[str, Any]] = {
    "sampling": {"env_steps": 2_000, "turns": 1, "calls": 5, "stock_calls": 1},
    "tls": {"env_steps": 2_000, "turns": 1, "calls": 5, "acting_turns": 1, "round_s": 0.1},
    "learner": {"env_steps": 2_000, "turns": 1, "round_s": 0.1},
    "writer": {"env_steps": 800, "turns": 1},
    "actor": {"names": ["HalfCheetahBulletEnv-v0"], "turns": 1, "round_s": 0.1},
    "publish": {"actors": 1, "turns": 1, "train_steps": 100, "env_steps": 2_000},
    "system": {"turns": 1, "train_steps": 1_000, "warm_up_s": 0.5, "seconds": 1.0},
    "memory": {"recorded": 16_000, "times": 2},
    "startup": {"turns": 1},
    "mixing": {"env_steps": 2_000, "rounds_of_items": 5},
    "experience": {"turns": 1, "calls": 1},
    "ppo": {"turns": 1, "iterations": 4},
    "precision": {"env_steps": 2_000, "turns": 1, "round_s": 0.1},
    "capacity": {"env_steps": 2_000, "sizes": [1, 2], "turns": 1, "passes": 2, "calls": 2},
    "scaling": {"actors": [1, 2], "window_s": 10.0, "late_beside": 2, "late_turns": 1},
}

_RUN = """
import dataclasses, importlib, json, os, sys
benchmark = importlib.import_module(f"benchmarks.{sys.argv[1]}")
rows, details = benchmark.run(**json.loads(sys.argv[2]))
print(json.dumps({"rows": [dataclasses.asdict(row) for row in rows], "details": details}), flush=True)
os._exit(0)  # As the command does.
"""


def test_no_benchmark_is_left_out() -> None:
    assert sorted([*_SIZES, "gpu"]) == sorted(NAMES)


def test_the_processor_beside_a_gpu() -> None:
    rates = gpu.measured(1, env_steps=2_000, turns=1, round_s=0.1)
    assert len(rates) == 8
    assert all(each["over Reverb"] > 0 for each in rates.values())


@pytest.mark.parametrize("name", _SIZES)
def test_a_small_run_gives_every_figure(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, name, json.dumps(_SIZES[name])],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["details"]
    for row in result["rows"]:
        assert row["benchmark"] == name
        assert math.isfinite(row["figure"]), row
        assert row["figure"] > 0, row
        assert row["ours"] > 0, row
