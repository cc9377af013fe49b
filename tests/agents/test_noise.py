"""Exploration noise of deterministic policies."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.trajectories import time_step

HALF_RANGE = np.array([2.0, 0.5], np.float32)


@pytest.mark.parametrize("name", ["td3", "ddpg"])
def test_exploration_noise_scales_with_half_of_each_actions_range(name, continuous, agents):
    agent = agents(name, continuous, exploration_noise=0.1)
    # Traced once: fifty times as fast.
    one = tf.function(functools.partial(exploration, agent, environments=1), autograph=False)
    noise = np.concatenate([one().numpy() for _ in range(1000)])
    # The standard deviation of a standard deviation from n samples is 1 / sqrt(2 n), here 2.2 %.
    np.testing.assert_allclose(noise.std(axis=0), 0.1 * HALF_RANGE, rtol=0.1)
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=0.4 * 0.1 * HALF_RANGE.max())


@pytest.mark.parametrize("name", ["td3", "ddpg"])
def test_each_environment_explores_by_itself(name, continuous, agents):
    agent = agents(name, continuous, exploration_noise=0.1)
    noise = exploration(agent, environments=1000).numpy()
    np.testing.assert_allclose(noise.std(axis=0), 0.1 * HALF_RANGE, rtol=0.1)
    assert len(np.unique(noise[:, 0])) > 900


def exploration(agent, environments):
    """The difference of collect actions from greedy ones, in environments that are all in the same state."""
    step = time_step.restart(tf.zeros([environments, 3]), environments)
    return agent.collect_policy.action(step).action - agent.policy.action(step).action
