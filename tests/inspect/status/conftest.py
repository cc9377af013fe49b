"""A run directory as its roles write it, in the middle of a run."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.process.heartbeat import Heartbeat
from actorlearner.records.run_directory import RunDirectory

NOW = 1.0e9


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """A run of two actors, the second of which was started again; figures as wide as they get."""
    directory = RunDirectory(tmp_path / ("run-" + "x" * 70))
    directory.prepare(load_config("sac_pendulum"))
    for name in ("collect-0", "collect-1", "learner", "replay", "eval"):
        directory.metrics(name).parent.mkdir(exist_ok=True)
        lines = [
            {"time": NOW + after} | record for after, record in zip((-4, -2), _RECORDS[name], strict=True)
        ]
        directory.metrics(name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    directory.heartbeats.mkdir()
    write_heartbeat(directory, "learner", "train step 9,000", started=NOW - 3_661)
    write_heartbeat(directory, "replay-server", "serving, transitions so far 98,765", started=None)
    write_heartbeat(directory, "collect-actor-0", "waiting for " + "replay to take transitions " * 4)
    write_heartbeat(directory, "collect-actor-1", "env step 5,000", time=NOW - 100, restarts=2)
    return directory


def write_heartbeat(directory: RunDirectory, name: str, doing: str, **more: Any) -> None:
    heartbeat = Heartbeat(**({"time": NOW - 1, "ready": True, "doing": doing, "started": NOW - 60} | more))
    directory.heartbeat(name).write_text(json.dumps(dataclasses.asdict(heartbeat)))


def _actor(environment: float) -> dict[str, Any]:
    return {
        "env_steps": 5_000,
        "env_steps_per_s": 50.5,
        "average_return": -1234.5,
        "policy_train_step": 8_990,
        "policy_generation": 1,
        "faults": 3,
        "environment_fraction": environment,
        "policy_fraction": 0.1,
        "writing_fraction": 0.05,
        "variables_fraction": 0.0,
        "rate_limiter_wait_fraction": 0.62,
        "memory_bytes": 300 * 2**20,
    }


_LEARNER = {
    "train_step": 9_000,
    "train_steps_per_s": 100.0,
    "loss": -12345.678,
    "data_wait_fraction": 0.02,
    "rate_limiter_wait_fraction": 0.01,
    "publish_fraction": 0.01,
    "overhead_fraction": 0.01,
    "staleness_mean": 1234.5,
    "staleness_max": 8_999,
    "memory_bytes": 500 * 2**20,
}
_REPLAY = {
    "size": 50_000,
    "inserts": 98_765,
    "samples": 2_500_000,
    "samples_per_insert": 250.5,
    "inserts_barred_fraction": 0.6,
    "sampling_barred_fraction": 0.01,
    "memory_bytes": 2**30,
}
_RECORDS: dict[str, list[dict[str, Any]]] = {
    "collect-0": [_actor(0.2)] * 2,
    "collect-1": [_actor(0.3)] * 2,
    "learner": [_LEARNER] * 2,
    "replay": [_REPLAY] * 2,
    "eval": [
        {"train_step": 0, "average_return": -100.25, "average_episode_length": 200.0},
        {"train_step": 8_000, "average_return": -1500.5, "average_episode_length": 200.0},
    ],
}
