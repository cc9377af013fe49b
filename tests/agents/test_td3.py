import numpy as np
import pytest
import tensorflow as tf

from actorlearner.errors import ConfigurationError

HALF_RANGE = np.array([2.0, 0.5], np.float32)


def test_noise_keys_reach_the_agent(continuous, agents):
    agent = agents("td3", continuous, target_policy_noise=0.3, target_policy_noise_clip=0.6)
    np.testing.assert_allclose(agent._target_policy_noise, 0.3 * HALF_RANGE)
    np.testing.assert_allclose(agent._target_policy_noise_clip, 0.6 * HALF_RANGE)


def test_the_targets_actions_stay_within_their_bounds(continuous, agents):
    agent = agents("td3", continuous, critic_joint_layers=[8])
    observation = tf.ones([1, 3])
    for target in (agent._target_critic_network_1, agent._target_critic_network_2):
        at_the_bound, beyond = (
            target((observation, tf.constant([action])))[0] for action in ([2.0, 1.0], [3.0, 1.5])
        )
        np.testing.assert_array_equal(at_the_bound, beyond)
    for critic, target in (
        (agent._critic_network_1, agent._target_critic_network_1),
        (agent._critic_network_2, agent._target_critic_network_2),
    ):
        for ours, theirs in zip(critic.variables, target.variables, strict=True):
            np.testing.assert_array_equal(ours, theirs)


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
