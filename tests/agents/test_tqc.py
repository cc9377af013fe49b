"""TQC: its losses against the formulas, written out in NumPy, and its networks."""

import numpy as np
import pytest
import tensorflow as tf

from actorlearner.errors import ConfigurationError

DISCOUNT = [1.0, 0.0, 1.0]
ALPHA = 0.5


def tqc(agents, specs, monkeypatch, log_probability):
    """An agent whose actions are all the same, with known probabilities."""
    agent = agents(
        "tqc", specs, gamma=0.9, reward_scale=2.0, initial_alpha=ALPHA, quantiles=4, dropped_quantiles=1
    )
    actions = tf.constant([[0.5, 0.2]] * 3)
    monkeypatch.setattr(
        agent, "_actions_and_log_probs", lambda *_, **__: (actions, tf.constant(log_probability))
    )
    return agent, actions


def quantiles(critic, observation, action):
    return critic((observation, action))[0].numpy()


def test_critics_learn_the_smallest_quantiles_of_both_targets(continuous, agents, batches, monkeypatch):
    log_probability = [0.1, -0.2, 0.3]
    agent, next_actions = tqc(agents, continuous, monkeypatch, log_probability)
    batch = batches(continuous, DISCOUNT)
    for variable in agent._target_critic_network_2.variables:
        variable.assign(3.0 * variable + 0.1)
    pooled = np.concatenate(
        [
            quantiles(critic, batch.next_observation, next_actions)
            for critic in (agent._target_critic_network_1, agent._target_critic_network_2)
        ],
        axis=1,
    )
    expected = 0.0
    for critic in (agent._critic_network_1, agent._critic_network_2):
        estimates = quantiles(critic, batch.observation, batch.action)
        for i in range(3):
            kept = np.sort(pooled[i])[:6]
            targets = 2.0 * batch.reward[i] + 0.9 * DISCOUNT[i] * (kept - ALPHA * log_probability[i])
            for quantile, estimate in enumerate(estimates[i]):
                for target in targets:
                    error = target - estimate
                    huber = 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5
                    expected += abs((quantile + 0.5) / 4 - (error < 0)) * huber / (4 * 6) / 3
    before, step, after = batch.transition()
    loss = agent.critic_loss(before, step.action, after, gamma=0.9, reward_scale_factor=2.0)
    assert loss.numpy() == pytest.approx(expected, rel=1e-5)


def test_the_actor_maximises_the_mean_of_all_quantiles(continuous, agents, batches, monkeypatch):
    log_probability = [0.1, -0.2, 0.3]
    agent, actions = tqc(agents, continuous, monkeypatch, log_probability)
    batch = batches(continuous, DISCOUNT)
    means = [
        quantiles(critic, batch.observation, actions).mean(axis=1)
        for critic in (agent._critic_network_1, agent._critic_network_2)
    ]
    expected = np.mean(ALPHA * np.array(log_probability) - np.mean(means, axis=0))
    loss = agent.actor_loss(batch.transition().time_step)
    assert loss.numpy() == pytest.approx(expected, rel=1e-5)


def test_too_many_dropped_quantiles_are_refused(continuous, agents):
    with pytest.raises(
        ConfigurationError, match=r"agent\.dropped_quantiles: 4 cannot work; allowed: less th"
    ):
        agents("tqc", continuous, quantiles=4, dropped_quantiles=4)
