"""A saved policy is loaded and evaluated from Python, in its own environment or in a given one."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import gym
import numpy as np
import pytest
import tensorflow as tf
import tree
from gym.envs.classic_control import CartPoleEnv
from tf_agents.environments import suite_gym
from tf_agents.policies import greedy_policy

from actorlearner.acting.saved_policy import Policy, episode_environment, evaluate, load_policy
from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config, EnvironmentConfig, EvaluateConfig
from actorlearner.environments.specs import load_specs
from actorlearner.errors import ConfigurationError
from actorlearner.records.policy_directory import PolicyDirectory
from actorlearner.records.run_directory import RunDirectory

CONFIG = Config(
    environment=EnvironmentConfig(suite="gym", name="CartPole-v1"),
    agent=DqnConfig(layers=[8], epsilon_start=0.0, epsilon_end=0.0),
    evaluate=EvaluateConfig(max_steps=600),  # Random weights may balance for ever where there is no limit.
)


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with a greedy policy of train step 7."""
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    directory.prepare(CONFIG)
    tf.keras.utils.set_random_seed(1)  # Of a hundred policies, one plays equally long episodes for two seeds.
    parts = make_agent(CONFIG, load_specs(CONFIG.environment))
    parts.train_step.assign(7)
    policy = greedy_policy.GreedyPolicy(parts.agent.policy)
    saver = PolicyDirectory(directory.policies / "greedy_policy", policy, parts.train_step, CONFIG)
    saver.prepare({})
    saver.replace()
    return directory.path


@pytest.fixture(name="policy", scope="module")
def _policy(run: Path) -> Policy:
    return load_policy(run)


def test_a_run_directory_and_a_policy_directory_give_the_same_policy(run: Path, policy: Policy) -> None:
    same = load_policy(str(run / "policies" / "greedy_policy"))
    assert (policy.train_step, policy.config) == (same.train_step, same.config) == (7, CONFIG)
    with pytest.raises(ConfigurationError, match="does not exist"):
        load_policy(run / "nothing")


def test_it_maps_one_observation_or_a_batch_to_actions(policy: Policy) -> None:
    batch = np.random.default_rng(0).normal(size=(5, 4))
    actions = policy(batch)
    assert (actions.shape, actions.dtype) == ((5,), np.int64)
    single = policy(batch[0])
    assert single.shape == ()
    np.testing.assert_array_equal(actions, [policy(observation) for observation in batch])


def test_episodes_of_its_own_environment_are_reproducible(policy: Policy) -> None:
    played = evaluate(policy, episodes=3)
    assert played == evaluate(policy, episodes=3)
    assert played != evaluate(policy, episodes=3, seed=1)
    assert all(episode.episode_return == episode.length for episode in played)


def test_it_plays_in_a_given_environment(policy: Policy) -> None:
    by_gym = evaluate(policy, gym.make("CartPole-v1"), episodes=3)
    assert len(by_gym) == 3
    assert by_gym == evaluate(policy, lambda: gym.make("CartPole-v1"), episodes=3)
    assert len(evaluate(policy, CartPoleEnv, episodes=1)) == 1, "a class is a callable that makes one"
    never_ends: Any = type(
        "NeverEnds", (CartPoleEnv,), {"step": lambda self, action: (self.state, 1.0, False, {})}
    )
    assert [episode.length for episode in evaluate(policy, never_ends, episodes=1)] == [600]
    by_tf_agents = evaluate(policy, suite_gym.load("CartPole-v1"), episodes=3)
    assert all(episode.length > 0 for episode in by_tf_agents)


def test_its_own_environment_is_the_environment_of_evaluations() -> None:
    environment = EnvironmentConfig("tests.acting.test_saved_policy:Hilly", "")
    config = Config(environment=environment, evaluate=EvaluateConfig(kwargs={"height": 2.0}))
    hilly = episode_environment(config, seed=0, number=0)
    np.testing.assert_array_equal(hilly.reset(), [2.0])


class Hilly(gym.Env):
    """Its observation is what it was made with."""

    observation_space = gym.spaces.Box(-9.0, 9.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, height: float = 0.0) -> None:
        self._height = height

    def reset(self) -> np.ndarray:
        return np.array([self._height], np.float32)


def test_episodes_leave_no_open_files(policy: Policy) -> None:
    evaluate(policy, episodes=1)
    before = len(os.listdir("/proc/self/fd"))
    evaluate(policy, episodes=3)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_state_of_an_lstm_is_zero_where_an_episode_begins() -> None:
    config = dataclasses.replace(CONFIG, agent=dataclasses.replace(CONFIG.agent, lstm_units=4))
    specs = load_specs(config.environment)
    greedy = greedy_policy.GreedyPolicy(make_agent(config, specs).agent.policy)
    policy = Policy(greedy, specs, 0, config)

    def largest() -> float:
        return max(float(np.abs(leaf).max()) for leaf in tree.flatten(policy.function.state))

    observation = np.ones(4)
    policy(observation, first=True)
    policy(observation)
    assert largest() > 0
    policy(observation, first=True)
    assert largest() == 0
