"""What a resumed run forgets of the train steps that were lost."""

from pathlib import Path

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from actorlearner.config.schema import Config
from actorlearner.local.resume import forget_after
from actorlearner.metrics import MetricsWriter, read_records
from actorlearner.run_directory import RunDirectory


@pytest.fixture(name="directory")
def _directory(tmp_path: Path, small_config: Config) -> RunDirectory:
    directory = RunDirectory(tmp_path / "run")
    directory.prepare(small_config)
    return directory


def _write(directory: RunDirectory, role: str, train_steps: range) -> None:
    metrics = MetricsWriter(directory.metrics(role))
    curves = tf.summary.create_file_writer(str(directory.summaries(role)))
    with curves.as_default():
        for train_step in train_steps:
            metrics.write({"train_step": train_step})
            tf.summary.scalar("curve", float(train_step), step=train_step)
    metrics.close()
    curves.close()


def _age(directory: RunDirectory, role: str) -> None:
    """Names the event files as if a second had passed: they are named after it, and read in that order."""
    for path in directory.summaries(role).glob("events.out.tfevents.*"):
        events, out, tfevents, second, *rest = path.name.split(".")
        path.rename(path.with_name(".".join([events, out, tfevents, str(int(second) - 1), *rest])))


@pytest.mark.parametrize("role", ["learner", "eval"])
def test_metrics_and_curves_go_on_without_a_break(directory: RunDirectory, role: str) -> None:
    _write(directory, role, range(0, 100, 10))
    _age(directory, role)
    forget_after(directory, 50)
    _age(directory, role)
    _write(directory, role, range(60, 90, 10))
    expected = list(range(0, 90, 10))
    assert [record["train_step"] for record in read_records(directory.metrics(role))] == expected
    events = EventAccumulator(str(directory.summaries(role)), tensor_size_guidance={"scalars": 0}).Reload()
    assert [event.step for event in events.Tensors("curve")] == expected
