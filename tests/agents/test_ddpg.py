import numpy as np
import pytest
import tensorflow as tf

from actorlearner.errors import ConfigurationError


def test_layers_and_learning_rates_reach_the_agent(continuous, agents):
    keys = {"actor_layers": [8], "critic_joint_layers": [5, 4]}
    agent = agents("ddpg", continuous, actor_learning_rate=0.1, critic_learning_rate=0.2, **keys)
    assert [variable.shape[0] for variable in agent._actor_network.variables[::2]] == [3, 8]
    assert [variable.shape[0] for variable in agent._critic_network.variables[::2]] == [5, 5, 4]
    np.testing.assert_allclose(agent._actor_optimizer.learning_rate, 0.1)
    np.testing.assert_allclose(agent._critic_optimizer.learning_rate, 0.2)


def test_every_train_step_updates_actor_and_critic(continuous, agents, batches):
    agent = agents("ddpg", continuous)
    experience = batches(continuous, [1.0, 0.0]).transition()
    for _ in range(2):
        before = [agent._actor_network.variables[0].numpy(), agent._critic_network.variables[0].numpy()]
        agent.train(experience)
        assert np.any(before[0] != agent._actor_network.variables[0])
        assert np.any(before[1] != agent._critic_network.variables[0])


def test_replicas_are_refused(continuous, agents):
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope(), pytest.raises(ConfigurationError) as refusal:
        agents("ddpg", continuous)
    (line,) = refusal.value.problems
    assert line.startswith("learn.strategy: ddpg trains on one device")
