"""Progress is read from metrics files that other processes are still writing."""

import json
from pathlib import Path

import pytest

from actorlearner.agents.sac import SacConfig
from actorlearner.config.schema import CollectConfig, Config, LearnConfig, ReplayConfig
from actorlearner.local.progress import Progress
from actorlearner.process import heartbeat
from actorlearner.records.metrics import MetricsWriter
from actorlearner.records.run_directory import RunDirectory


@pytest.fixture
def config() -> Config:
    return Config(
        agent=SacConfig(),
        learn=LearnConfig(train_steps=1_000),
        collect=CollectConfig(actors=2),
        replay=ReplayConfig(capacity=500),
    )


@pytest.fixture
def directory(tmp_path: Path, config: Config) -> RunDirectory:
    directory = RunDirectory(tmp_path)
    directory.prepare(config)
    return directory


def write(directory: RunDirectory, name: str, **record: object) -> None:
    writer = MetricsWriter(directory.metrics(name))
    writer.write(record)


def test_nothing_is_known_before_the_first_record(config: Config, directory: RunDirectory) -> None:
    progress = Progress(config, directory)
    assert progress.new_evaluations() == []
    assert (progress.train_step, progress.env_steps, progress.episodes) == (0, 0, 0)
    assert progress.status.time_left_s is None
    assert progress.first_steps_s is None


def test_totals_are_of_all_actors(config: Config, directory: RunDirectory) -> None:
    progress = Progress(config, directory)
    write(directory, "learner", train_step=600, train_steps_per_s=50.0)
    write(directory, "collect-0", env_steps=300, env_steps_per_s=20.0, episodes=3, average_return=-100.0)
    write(directory, "collect-1", env_steps=310, env_steps_per_s=22.0, episodes=0, average_return=None)
    heartbeat.begin(directory.heartbeat("learner"))
    progress.update()
    heartbeat.end()
    assert progress.train_step == 600
    assert progress.status.time_left_s == pytest.approx(400 / 50)
    assert progress.env_steps == 610
    assert progress.status.env_steps_per_s == pytest.approx(42.0)
    assert progress.episodes == 3
    assert progress.first_steps_s == pytest.approx((0, 0), abs=10)


def test_the_first_env_step_is_known_however_long_replay_fills(
    config: Config, directory: RunDirectory
) -> None:
    progress = Progress(config, directory)
    write(directory, "collect-0", env_steps=10)
    progress.update()
    directory.metrics("collect-0").unlink()  # As if that record were not among the newest ones any more.
    write(directory, "learner", train_step=10)
    progress.update()
    assert progress.first_steps_s == pytest.approx((0, 0), abs=10)


def test_a_resumed_run_has_rates_of_its_own(config: Config, directory: RunDirectory) -> None:
    write(directory, "learner", train_step=600)
    write(directory, "collect-0", env_steps=300)
    progress = Progress(config, directory)
    assert progress.is_resumed
    assert progress.mean_rates == (0, 0)
    write(directory, "learner", train_step=700)
    progress.update()
    assert progress.mean_rates[0] > 0


def test_evaluations_are_kept_in_order_and_returned_once(config: Config, directory: RunDirectory) -> None:
    write(directory, "eval", train_step=0, average_return=-3.0)
    progress = Progress(config, directory)
    write(directory, "eval", train_step=500, average_return=-2.0)
    assert [evaluation["train_step"] for evaluation in progress.new_evaluations()] == [500]
    assert progress.new_evaluations() == []
    assert [evaluation["train_step"] for evaluation in progress.evaluations] == [0, 500]
    assert all("time" in json.loads(line) for line in directory.metrics("eval").read_text().splitlines())
