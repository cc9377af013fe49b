"""The state a run resumes from, and the removal of records after it."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from actorlearner.config.schema import Config, EvaluateConfig
from actorlearner.local.resume import SavedState, read_state, roll_back
from actorlearner.records.metrics import MetricsWriter, read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.seal import seal, seal_path
from actorlearner.records.summaries import Summaries
from tests.support.harm import corrupt


@pytest.fixture(name="directory")
def _directory(tmp_path: Path, small_config: Config) -> RunDirectory:
    directory = RunDirectory(tmp_path / "run")
    directory.prepare(small_config)
    return directory


def _write(directory: RunDirectory, role: str, train_steps: range) -> None:
    metrics = MetricsWriter(directory.metrics(role))
    curves = Summaries(directory.summaries(role))
    with curves.writer.as_default():
        for train_step in train_steps:
            metrics.write({"train_step": train_step})
            tf.summary.scalar("curve", float(train_step), step=train_step)
    assert curves.flush()


def _age(directory: RunDirectory, role: str) -> None:
    """Renames the event files, which TensorBoard reads in the order of their names, to one second later."""
    for path in directory.summaries(role).glob("events.out.tfevents.*"):
        events, out, tfevents, second, *rest = path.name.split(".")
        path.rename(path.with_name(".".join([events, out, tfevents, str(int(second) - 1), *rest])))


@pytest.mark.parametrize("role", ["learner", "eval"])
def test_metrics_and_curves_continue_without_a_gap(directory: RunDirectory, role: str) -> None:
    _write(directory, role, range(0, 100, 10))
    _age(directory, role)
    roll_back(directory, 50)
    _age(directory, role)
    _write(directory, role, range(60, 90, 10))
    expected = list(range(0, 90, 10))
    assert [record["train_step"] for record in read_records(directory.metrics(role))] == expected
    events = EventAccumulator(str(directory.summaries(role)), tensor_size_guidance={"scalars": 0}).Reload()
    assert [event.step for event in events.Tensors("curve")] == expected


def test_points_of_an_evaluation_without_a_record_are_removed(
    directory: RunDirectory,
) -> None:
    _write(directory, "eval", range(0, 50, 10))
    records = directory.metrics("eval").read_text().splitlines(keepends=True)
    directory.metrics("eval").write_text("".join(records[:-1]))
    roll_back(directory, 50)
    _age(directory, "eval")
    _write(directory, "eval", range(40, 90, 10))
    events = EventAccumulator(str(directory.summaries("eval")), tensor_size_guidance={"scalars": 0}).Reload()
    assert [event.step for event in events.Tensors("curve")] == list(range(0, 90, 10))


def _save(directory: Path, name: str, **facts: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text("what was saved")
    seal(seal_path(directory, name), [directory / name], facts)


def test_saved_state_comes_from_the_newest_complete_checkpoints(directory: RunDirectory) -> None:
    """The newest complete checkpoints count; with `check=False` (after a stop) seals are trusted."""
    assert read_state(directory) == SavedState(train_step=0, transitions=0, evaluated=-1)
    for train_step, time in ((20, "2026-01-02T03:04:05+00:00"), (100, "2026-01-02T03:04:05.5+00:00")):
        _save(directory.learner_checkpoints, f"ckpt-{train_step}", train_step=train_step)
        _save(directory.replay_checkpoints, time, size=2 * train_step)
        _write(directory, "eval", range(train_step, train_step + 1))
    assert read_state(directory) == SavedState(train_step=100, transitions=200, evaluated=100)
    corrupt(directory.learner_checkpoints / "ckpt-100")
    corrupt(directory.replay_checkpoints / time)
    assert read_state(directory) == SavedState(train_step=20, transitions=40, evaluated=100)
    assert read_state(directory, check=False) == SavedState(train_step=100, transitions=200, evaluated=100)


def test_without_evaluation_a_run_ends_with_its_last_checkpoint(small_config: Config) -> None:
    saved = SavedState(train_step=small_config.learn.train_steps, transitions=0, evaluated=-1)
    assert not saved.finished(small_config)
    off = dataclasses.replace(small_config, evaluate=EvaluateConfig(interval=None))
    assert saved.finished(off)
    assert not dataclasses.replace(saved, train_step=1).finished(off)


def test_rolling_back_prints_nothing_and_imports_no_tensorflow(directory: RunDirectory) -> None:
    directory.summaries("learner").mkdir(parents=True)
    script = (
        "import sys; from pathlib import Path; from actorlearner.records.run_directory import RunDirectory; "
        "from actorlearner.local.resume import roll_back; "
        "roll_back(RunDirectory(Path(sys.argv[1])), 50); "
        "assert 'tensorflow' not in sys.modules"
    )
    command = [sys.executable, "-c", script, str(directory.path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert len(list(directory.summaries("learner").iterdir())) == 1
