"""Numbered environments: their numbers survive float32, replay and the death of their process."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.config.resolved import to_yaml
from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.environments.load import load_environment
from actorlearner.errors import ConfigurationError
from actorlearner.process.cores import collect_actors
from benchmarks.chaos import numbered
from benchmarks.chaos.experiment import under_chaos
from benchmarks.chaos.numbered import Pace, Steps, observation, read_observations, read_produced

LARGEST = 2**24 - 1


@pytest.mark.parametrize("identity", [0, 1, 2**24 - 1, 2**24, 2**48 - 1])
@pytest.mark.parametrize("number", [0, 1, 8_191, LARGEST])
def test_observations_are_read_back_exactly(identity: int, number: int) -> None:
    observed = observation(identity, number, LARGEST - number)
    assert observed.dtype == np.float32
    assert (observed >= 0).all()
    assert (observed < 1).all()
    read = read_observations(observed[None])
    assert (read.identity[0], read.number[0], read.episode[0]) == (identity, number, LARGEST - number)


def configuration(tmp_path: Path, name: str) -> EnvironmentConfig:
    arguments = {
        "directory": str(tmp_path / "steps"),
        "interval_s": 1e-6,
        "acts_as": {"suite": "gym", "name": name},
    }
    return EnvironmentConfig(suite=numbered.SUITE, name="", kwargs=arguments)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_it_has_the_other_environments_action_space_and_numbers_its_env_steps(
    tmp_path: Path, name: str
) -> None:
    other = load_environment(EnvironmentConfig(suite="gym", name=name), seed=0)
    environment = load_environment(configuration(tmp_path, name), seed=0)
    assert environment.action_spec == other.action_spec
    action = np.zeros(environment.action_spec.shape, environment.action_spec.dtype)
    here, discounts, lengths = environment.reset(), set(), set()
    length = 0
    for number in range(500):
        numbers = read_observations(here[None])
        step = environment.step(action)
        following = read_observations(step.observation[None])
        assert numbers.number[0] == number == following.number[0] - 1
        assert numbers.identity == following.identity
        assert numbers.episode == following.episode
        assert 0 <= step.reward < 1
        length += 1
        here = step.observation
        if step.last:
            discounts.add(step.discount)
            lengths.add(length)
            here, length = environment.reset(), 0
    assert discounts == {0.0, 1.0}
    assert len(lengths) > 5
    (produced,) = read_produced(tmp_path / "steps")
    assert (produced.pid, produced.identity, len(produced.times)) == (os.getpid(), numbers.identity[0], 500)
    assert (np.diff(produced.times) >= 0).all()


def test_identities_are_unique(tmp_path: Path) -> None:
    identities = {Steps(tmp_path).identity for _ in range(100)}
    assert len(identities) == 100
    assert max(identities) < 2**48
    assert not list(tmp_path.iterdir())  # They took no env step.


_STEPS = """
import sys
from pathlib import Path
from benchmarks.chaos.numbered import Steps
steps = Steps(Path(sys.argv[1]))
for _ in range(1234):
    steps.take()
print("taken", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_took_is_known(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _STEPS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(numbered.__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"taken\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (produced,) = read_produced(tmp_path)
    assert (produced.pid, len(produced.times)) == (process.pid, 1234)


def test_the_pace_is_kept_and_lost_time_is_not_made_up_for() -> None:
    pace = Pace(0.02)
    began = time.monotonic()
    for _ in range(6):
        pace.wait()
    assert time.monotonic() - began >= 0.1
    time.sleep(0.1)  # As if stopped.
    began = time.monotonic()
    for _ in range(6):
        pace.wait()
    assert time.monotonic() - began >= 0.1


def test_a_configuration_under_chaos_lasts_and_can_be_written_and_read(
    small_config: Config, tmp_path: Path
) -> None:
    replay = dataclasses.replace(small_config.replay, updates_per_env_step=2.0)
    config = under_chaos(dataclasses.replace(small_config, replay=replay), tmp_path, duration_s=116)
    # 100 train steps at two for each env step, after the first 8.
    assert config.environment.kwargs["interval_s"] == 2.0 * collect_actors(config.collect)
    assert config.replay.capacity >= 10 * 58
    assert config.learn.checkpoint_interval == 3
    assert config.replay.checkpoint_interval_s == 116 / 40
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(config))
    assert load_config(str(path)) == config
    assert load_environment(config.environment, seed=0).action_spec.dtype == np.int64


def test_without_a_ratio_of_updates_chaos_is_refused(small_config: Config, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="null cannot work with chaos"):
        under_chaos(small_config, tmp_path, duration_s=60)
