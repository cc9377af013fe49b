"""The findings after a run: its problems, and the account of its transitions."""

import dataclasses
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actorlearner.agents.experience import StoredTransition
from actorlearner.config.schema import Config
from actorlearner.records.run_directory import RunDirectory
from benchmarks.chaos import findings
from benchmarks.chaos.experiment import under_chaos
from benchmarks.chaos.numbered import Produced, observation

PID = 2**22 + 1
"""No process has such a great one."""

IDENTITY, PRODUCED = 5, 10


def _stored(numbers: range) -> StoredTransition:
    here, there = (np.array([observation(IDENTITY, n + step, 1) for n in numbers]) for step in (0, 1))
    nothing = np.zeros(len(numbers), np.float32)
    return StoredTransition(here, nothing, nothing, nothing, there, nothing)


@pytest.mark.parametrize(
    ("stored", "problem", "lost_with_actor"),
    [
        (None, "there is no complete checkpoint of replay", PRODUCED),
        (range(PRODUCED - 2), None, 2),
        (range(PRODUCED * 1_000), "replay is full, so lost transitions cannot be counted", 0),
    ],
)
def test_problems_and_losses(
    stored: range | None,
    problem: str | None,
    lost_with_actor: int,
    small_config: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replay = dataclasses.replace(small_config.replay, updates_per_env_step=1.0)
    config = under_chaos(dataclasses.replace(small_config, replay=replay), tmp_path, duration_s=60)
    watch: Any = types.SimpleNamespace(
        roles={PID: "collect-actor-0"},
        ready=[],
        losses=[],
        unplanned_deaths=["learner died"],
        ended=0.0,
        elapsed_s=1.0,
    )
    harmer: Any = types.SimpleNamespace(done=[], left=1, killed={PID})
    produced = [Produced(PID, IDENTITY, times=1_000.0 + np.arange(PRODUCED))]
    monkeypatch.setattr(findings, "limit_tensorflow", lambda threads: None)  # TensorFlow may be in use.
    monkeypatch.setattr(findings, "read_produced", lambda steps: produced)
    monkeypatch.setattr(findings, "_stored", lambda *_: None if stored is None else [_stored(stored)])
    found = findings.find(config, RunDirectory(tmp_path), tmp_path, watch, harmer, ["no time"])
    assert found.problems == ["no time", "learner died", *([problem] if problem else [])]
    assert (found.account.produced, found.account.lost_with_actor) == (PRODUCED, lost_with_actor)
    assert (found.train_step, found.evaluated, found.not_done, found.left) == (-1, -1, 1, [])
