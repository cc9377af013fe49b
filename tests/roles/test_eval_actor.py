"""The eval actor ends where evaluation is off."""

import dataclasses
from pathlib import Path

import pytest

from actorlearner.config.schema import Config, EvaluateConfig
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory
from actorlearner.roles import eval_actor


def test_without_evaluation_the_role_ends_at_once(
    small_config: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = dataclasses.replace(small_config, evaluate=EvaluateConfig(interval=None))
    with caplog.at_level("INFO"):
        eval_actor.run(config, RunDirectory(tmp_path), Stop(), replay_address=("nowhere:1",))
    assert caplog.messages == ["evaluation is off (evaluate.interval: null)"]
