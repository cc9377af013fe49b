"""The Python API as a script or a notebook uses it, with a real run."""

import dataclasses
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import actorlearner
from actorlearner.callbacks import Callback
from actorlearner.errors import ConfigurationError
from tests.support.processes import (
    REPOSITORY,
    TINY_RUN,
    Command,
    marked_processes,
    records,
    saved_train_step,
    wait_for,
)

pytestmark = pytest.mark.integration

_SCRIPT = """
import sys

import actorlearner

config = actorlearner.load_config("td3_pendulum", [*sys.argv[1:], "learn.train_steps=1000000"])
run = actorlearner.train(config, "run")
print("finished:", run.finished)
assert "tensorflow" not in sys.modules
"""


def test_a_script_that_trains_is_interrupted(
    start: Callable[..., Command], mark: str, tmp_path: Path
) -> None:
    command = start("-c", _SCRIPT, *TINY_RUN, fresh=True)
    learner = tmp_path / "run" / "metrics" / "learner.jsonl"
    wait_for(lambda: any(record["train_step"] > 0 for record in records(learner)), "the first train steps")
    # As a notebook's stop button does: the signal reaches this process alone, not its children.
    command.process.send_signal(signal.SIGINT)
    assert command.finish() == 0, command.out + command.err
    lines = command.out.splitlines()
    assert lines[-1] == "finished: False"
    train_step = saved_train_step(tmp_path / "run")
    assert train_step > 0
    assert any(line.startswith(f"stopped at train step {train_step:,}; saved: ") for line in lines)
    assert "tensorflow" not in command.out.lower()
    assert marked_processes(mark) == []


def test_a_directory_of_another_configuration_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(REPOSITORY), *sys.path])
    directory = tmp_path / "run"
    directory.mkdir()
    config = actorlearner.load_config("td3_pendulum")
    from actorlearner.records.run_directory import RunDirectory

    RunDirectory(directory).prepare(config)
    with pytest.raises(ConfigurationError) as refused:
        actorlearner.train(actorlearner.load_config("td3_pendulum", ["seed=7"]), directory)
    (problem,) = refused.value.problems
    assert problem.endswith("holds a run of another configuration: seed: 7 here, 0 there")


def test_a_refused_value_is_named_without_a_file_that_the_user_does_not_have(tmp_path: Path) -> None:
    config = actorlearner.load_config("td3_pendulum")
    learn = dataclasses.replace(config.learn, batch_size=0)
    with pytest.raises(ConfigurationError) as refused:
        actorlearner.train(dataclasses.replace(config, learn=learn), tmp_path / "run")
    problems = ("learn.batch_size: 0 is out of range; allowed: integer, at least 1",)
    assert refused.value.problems == problems
    assert not (tmp_path / "run").exists()


def test_a_callback_that_the_roles_cannot_import_is_refused(tmp_path: Path) -> None:
    class Mine(Callback):
        pass

    Mine.__module__ = "__main__"
    with pytest.raises(ConfigurationError, match="Mine is defined in this script or notebook"):
        actorlearner.train("td3_pendulum", tmp_path / "run", callbacks=[Mine])
    assert not (tmp_path / "run").exists()


def test_no_run_to_resume(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no run; allowed: the directory of a run"):
        actorlearner.resume(tmp_path)
