import functools

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.trajectories import time_step

from actorlearner.errors import ConfigurationError

HALF_RANGE = np.array([2.0, 0.5], np.float32)


def test_exploration_noise_is_in_halves_of_each_actions_range(continuous, agents):
    agent = agents("td3", continuous, exploration_noise=0.1)
    # Traced once: fifty times as fast.
    one = tf.function(functools.partial(exploration, agent, environments=1), autograph=False)
    noise = np.concatenate([one().numpy() for _ in range(1000)])
    # The standard deviation of a standard deviation from n samples is 1 / sqrt(2 n), here 2.2 %.
    np.testing.assert_allclose(noise.std(axis=0), 0.1 * HALF_RANGE, rtol=0.1)
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=0.4 * 0.1 * HALF_RANGE.max())


def test_each_environment_explores_by_itself(continuous, agents):
    agent = agents("td3", continuous, exploration_noise=0.1)
    noise = exploration(agent, environments=1000).numpy()
    np.testing.assert_allclose(noise.std(axis=0), 0.1 * HALF_RANGE, rtol=0.1)
    assert len(np.unique(noise[:, 0])) > 900


def exploration(agent, environments):
    """What an action of the collect policy differs by, in environments that are all in one state."""
    step = time_step.restart(tf.zeros([environments, 3]), environments)
    return agent.collect_policy.action(step).action - agent.policy.action(step).action


def test_noise_keys_reach_the_agent(continuous, agents):
    agent = agents("td3", continuous, target_policy_noise=0.3, target_policy_noise_clip=0.6)
    np.testing.assert_allclose(agent._target_policy_noise, 0.3 * HALF_RANGE)
    np.testing.assert_allclose(agent._target_policy_noise_clip, 0.6 * HALF_RANGE)


def test_the_actor_is_updated_every_period(continuous, agents, batches):
    agent = agents("td3", continuous, actor_update_period=3)
    experience = batches(continuous, [1.0, 0.0]).transition()

    def train_changes_actor():
        before = agent._actor_network.variables[0].numpy()
        agent.train(experience)
        return bool((before != agent._actor_network.variables[0].numpy()).any())

    assert [train_changes_actor() for _ in range(6)] == [True, False, False, True, False, False]


def test_layers_and_learning_rates_reach_the_agent(continuous, agents):
    agent = agents(
        "td3",
        continuous,
        actor_layers=[8],
        critic_joint_layers=[5, 4],
        actor_learning_rate=0.1,
        critic_learning_rate=0.2,
    )
    assert [variable.shape[0] for variable in agent._actor_network.variables[::2]] == [3, 8]
    assert [variable.shape[0] for variable in agent._critic_network_2.variables[::2]] == [5, 5, 4]
    np.testing.assert_allclose(agent._actor_optimizer.learning_rate, 0.1)
    np.testing.assert_allclose(agent._critic_optimizer.learning_rate, 0.2)


def test_the_two_critics_start_differently(continuous, agents):
    agent = agents("td3", continuous)
    first, second = agent._critic_network_1.variables[0], agent._critic_network_2.variables[0]
    assert np.any(first.numpy() != second.numpy())


def test_replicas_are_refused(continuous, agents):
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope(), pytest.raises(ConfigurationError) as refusal:
        agents("td3", continuous)
    (line,) = refusal.value.problems
    assert line.startswith("learn.strategy: td3 trains on one device")
