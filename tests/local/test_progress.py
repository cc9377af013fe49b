"""Progress is read from metrics files that other processes are still writing."""

import json
from pathlib import Path

import pytest

from actorlearner.config.schema import CollectConfig, Config, LearnConfig, ReplayConfig
from actorlearner.local.progress import Progress
from actorlearner.records.metrics import MetricsWriter
from actorlearner.records.run_directory import RunDirectory


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


@pytest.fixture
def config() -> Config:
    return Config(
        learn=LearnConfig(train_steps=1_000),
        collect=CollectConfig(actors=2),
        replay=ReplayConfig(capacity=500),
    )


def write(directory: RunDirectory, name: str, **record: object) -> None:
    writer = MetricsWriter(directory.metrics(name))
    writer.write(record)


def test_nothing_is_known_before_the_first_record(config: Config, directory: RunDirectory) -> None:
    progress = Progress(config, directory)
    assert progress.update() == []
    assert (progress.train_step, progress.env_steps, progress.replay_size) == (0, 0, 0)
    assert progress.time_left_s is None
    assert progress.collect_return is None


def test_figures_of_all_actors_are_put_together(config: Config, directory: RunDirectory) -> None:
    write(directory, "learner", train_step=600, train_steps_per_s=50.0)
    write(directory, "collect-0", env_steps=300, env_steps_per_s=20.0, episodes=3, average_return=-100.0)
    write(directory, "collect-1", env_steps=310, env_steps_per_s=22.0, episodes=0, average_return=None)
    write(directory, "replay", size=500)
    progress = Progress(config, directory)
    progress.update()
    assert progress.train_step == 600
    assert progress.time_left_s == pytest.approx(400 / 50)
    assert progress.env_steps == 610
    assert progress.env_steps_per_s == pytest.approx(42.0)
    assert progress.episodes == 3
    assert progress.collect_return == -100.0
    assert progress.replay_size == progress.capacity == 500


def test_evaluations_are_kept_in_order_and_returned_once(config: Config, directory: RunDirectory) -> None:
    progress = Progress(config, directory)
    write(directory, "eval", train_step=0, average_return=-3.0)
    assert [evaluation["train_step"] for evaluation in progress.update()] == [0]
    write(directory, "eval", train_step=500, average_return=-2.0)
    assert [evaluation["train_step"] for evaluation in progress.update()] == [500]
    assert [evaluation["train_step"] for evaluation in progress.evaluations] == [0, 500]
    assert all("time" in json.loads(line) for line in directory.metrics("eval").read_text().splitlines())
