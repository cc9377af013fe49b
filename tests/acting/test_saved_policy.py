"""A saved policy is loaded and evaluated from Python, in its own environment or in a given one."""

from pathlib import Path

import gym
import numpy as np
import pytest
from tf_agents.environments import suite_gym
from tf_agents.policies import greedy_policy

from actorlearner.acting.saved_policy import Policy, evaluate, load_policy
from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.environments.specs import load_specs
from actorlearner.errors import ConfigurationError
from actorlearner.records.policy_directory import PolicyDirectory
from actorlearner.records.run_directory import RunDirectory

CONFIG = Config(
    environment=EnvironmentConfig(suite="gym", name="CartPole-v1"),
    agent=DqnConfig(layers=[8], epsilon_start=0.0, epsilon_end=0.0),
)


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with a greedy policy of train step 7."""
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    directory.prepare(CONFIG)
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
    by_tf_agents = evaluate(policy, suite_gym.load("CartPole-v1"), episodes=3)
    assert all(episode.length > 0 for episode in by_tf_agents)
