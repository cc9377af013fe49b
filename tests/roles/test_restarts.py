"""The seeds of roles: equal in all runs with the same seed, and different after a restart within a run."""

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gym
import numpy as np
import pytest
import reverb
import tensorflow as tf

from actorlearner.agents.configuration import load_config
from actorlearner.config.schema import CollectConfig, Config, EnvironmentConfig
from actorlearner.environments.load import load_environment
from actorlearner.environments.seeds import seed_for
from actorlearner.environments.specs import load_specs
from actorlearner.learning.group import LearnerGroup
from actorlearner.process.stop import Stop
from actorlearner.records.metrics import MetricsWriter
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.identity import announce, identity_table
from actorlearner.replay.layout import make_layout
from actorlearner.roles import collect_actor, eval_actor
from actorlearner.roles.learner import make_seeded_agent, seed_training
from actorlearner.variables.container import variable_tables

ENV_STEPS = 40

_stop = Stop()
_acted: list[Any] = []


class Recorded(gym.Wrapper):
    """CartPole-v1 that records its first observations and its actions, and stops its actor in time."""

    def __init__(self) -> None:
        super().__init__(gym.make("CartPole-v1"))

    def reset(self, **kwargs: Any) -> Any:
        observation = self.env.reset(**kwargs)
        _acted.append(("start", *np.round(observation, 6).tolist()))
        return observation

    def step(self, action: Any) -> Any:
        _acted.append(("action", action))
        if sum(1 for what, *_ in _acted if what == "action") >= ENV_STEPS:
            _stop.request()
        return self.env.step(action)


@pytest.fixture
def config(small_config: Config) -> Config:
    return dataclasses.replace(
        small_config,
        environment=EnvironmentConfig(suite=f"{__name__}:Recorded", name=""),
        collect=CollectConfig(actors=1, envs_per_actor=2, initial_random_steps=1_000),
    )


@pytest.fixture
def address(config: Config, free_port: int) -> Iterator[str]:
    layout = make_layout(config, load_specs(config.environment))
    tables = [experience_table(config, layout), *variable_tables([tf.Variable([1.0])])]
    server = reverb.Server([*tables, identity_table("abc")], free_port)
    announce(reverb.Client(f"localhost:{free_port}"), "abc", config)
    yield f"localhost:{free_port}"
    server.stop()


def life(config: Config, address: str, path: Path, index: int = 0) -> list[Any]:
    """Runs a collect actor; returns all that its environments were asked to do."""
    global _stop
    _stop = Stop()
    _acted.clear()
    directory = RunDirectory(path)
    directory.prepare(config, joins=True)
    collect_actor.run(config, directory, _stop, replay_address=(address,), actor_index=index)
    first_action = next(i for i, (what, *_) in enumerate(_acted) if what == "action")
    return _acted[first_action - 2 :]  # From the two resets at the beginning of acting.


def test_a_second_life_starts_and_acts_differently(
    config: Config, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # TensorFlow has started here.
    monkeypatch.setattr(collect_actor, "limit_tensorflow", lambda threads, gpus=False: None)
    lives = [life(config, address, tmp_path) for _ in range(3)]
    other = life(config, address, tmp_path, index=1)
    for number, one in enumerate([*lives, other]):
        starts = {each for each in one if each[0] == "start"}
        actions = [each for each in one if each[0] == "action"]
        for two in [*lives, other][number + 1 :]:
            assert not starts & set(two)
            assert actions != [each for each in two if each[0] == "action"]


def test_the_first_life_is_seeded_by_its_place_alone(
    config: Config, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect_actor, "limit_tensorflow", lambda threads, gpus=False: None)
    found = life(config, address, tmp_path / "run")[:2]
    for i in range(2):
        load_environment(config.environment, seed_for(config.seed, "collect-actor", 0, i)).reset()
        assert found[i] == _acted[-1]


def test_an_eval_actor_plays_other_episodes_in_its_second_life(
    config: Config, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eval_actor, "limit_tensorflow", lambda threads, gpus=False: None)
    starts = []
    stopped = Stop()
    stopped.request()  # Before its first episode, which would need a policy.
    directory = RunDirectory(tmp_path)
    directory.prepare(config, joins=True)
    for train_step in (0, 1_000):
        eval_actor.run(config, directory, stopped, replay_address=(address,))
        starts.append(_acted[-1])
        MetricsWriter(directory.metrics("eval")).write({"train_step": train_step})
    assert starts[0] != starts[1]


def test_a_learner_goes_on_with_other_random_numbers() -> None:
    def drawn(index: int, restored: int) -> float:
        """The first number of the training graph; at its first start a learner is seeded with its agent."""
        tf.random.set_seed(seed_for(0, "learner", index))
        if restored:
            seed_training(0, index, restored)
        return float(tf.function(lambda: tf.random.uniform([]))())

    all_of_them = [(index, restored) for index in range(2) for restored in range(3)]
    assert len({drawn(*each) for each in all_of_them}) == len(all_of_them)
    assert drawn(1, 2) == drawn(1, 2)


@pytest.mark.parametrize("name", ["sac_pendulum", "td3_pendulum", "dqn_cartpole"])
def test_equal_seeds_begin_with_equal_policies(name: str) -> None:
    def policy(seed: int) -> list[Any]:
        config = load_config(name, [f"seed={seed}"])
        random.seed()  # As in every new process.
        parts = make_seeded_agent(config, specs, LearnerGroup(tf.distribute.get_strategy(), Stop()))
        return [variable.numpy() for variable in parts.policy_variables if np.any(variable.numpy())]

    specs = load_specs(load_config(name).environment)
    first, same, other = policy(3), policy(3), policy(4)
    for values in zip(first, same, strict=True):
        np.testing.assert_array_equal(*values)
    assert not any(
        np.array_equal(*values) for values in zip(first, other, strict=True) if values[0].ndim == 2
    )
