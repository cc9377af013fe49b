"""C51 and QR-DQN: their losses against the formulas, written out in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from actorlearner.agents.distributional_agent import quantile_losses
from actorlearner.errors import ConfigurationError

REWARDS = np.array([0.3, -1.0, 2.5], np.float32)
DISCOUNTS = np.array([0.9, 0.0, 0.5], np.float32)


def outputs(seed, atoms):
    return np.random.default_rng(seed).normal(size=(3, atoms)).astype(np.float32)


def softmax(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def test_the_gradient_of_quantile_losses_is_tensorflows():
    estimates, targets = tf.constant(3.0 * outputs(1, 4)), tf.constant(3.0 * outputs(2, 5))
    weights = tf.constant(outputs(3, 4))

    def plain(estimates):
        errors = targets[:, None, :] - estimates[:, :, None]
        size = tf.abs(errors)
        huber = tf.where(size <= 1.0, 0.5 * errors**2, size - 0.5)
        midpoints = tf.constant([0.125, 0.375, 0.625, 0.875])[:, None]
        return tf.reduce_mean(tf.abs(midpoints - tf.cast(errors < 0.0, tf.float32)) * huber, axis=2)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(estimates)
        losses, expected = quantile_losses(estimates, targets), plain(estimates)
        weighted, expected_weighted = weights * losses, weights * expected
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    gradient = tape.gradient(weighted, estimates)
    np.testing.assert_allclose(gradient, tape.gradient(expected_weighted, estimates), rtol=1e-5, atol=1e-7)


def test_the_loss_of_c51(discrete, agents):
    agent = agents("c51", discrete, atoms=5, min_value=-2.0, max_value=2.0)
    support, width = np.linspace(-2.0, 2.0, 5), 1.0
    logits, next_logits = outputs(1, 5), outputs(2, 5)
    expected = []
    for i in range(3):
        target = np.zeros(5)
        for value, probability in zip(support, softmax(next_logits[i]), strict=True):
            shifted = np.clip(REWARDS[i] + DISCOUNTS[i] * value, -2.0, 2.0)
            place = (shifted + 2.0) / width  # Between two bins, which share the probability.
            low, high = int(np.floor(place)), int(np.ceil(place))
            target[low] += probability * (1.0 if low == high else high - place)
            target[high] += 0.0 if low == high else probability * (place - low)
        expected.append(-np.sum(target * np.log(softmax(logits[i]))))
    losses, errors = agent._distribution_loss(*map(tf.constant, (logits, next_logits, REWARDS, DISCOUNTS)))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(errors, losses)


def test_the_loss_of_qr_dqn(discrete, agents):
    agent = agents("qr_dqn", discrete, quantiles=4)
    values, next_values = 2 * outputs(1, 4), 2 * outputs(2, 4)
    expected = np.zeros(3)
    for i in range(3):
        targets = REWARDS[i] + DISCOUNTS[i] * next_values[i]
        for quantile, value in enumerate(values[i]):
            for target in targets:
                error = target - value
                huber = 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5
                expected[i] += abs((quantile + 0.5) / 4 - (error < 0)) * huber / 4
    losses, errors = agent._distribution_loss(*map(tf.constant, (values, next_values, REWARDS, DISCOUNTS)))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    means = REWARDS + DISCOUNTS * next_values.mean(axis=1) - values.mean(axis=1)
    np.testing.assert_allclose(errors, means, rtol=1e-4)


@pytest.mark.parametrize("name", ["c51", "qr_dqn"])
def test_actions_are_greedy_in_the_mean(name, discrete, agents, batches):
    agent = agents(name, discrete)
    observation = tf.constant(batches(discrete, [1.0] * 6).observation)
    distribution = agent._q_network.distribution(observation).numpy()
    if name == "c51":
        support = np.linspace(-10.0, 10.0, 51)
        means = [[softmax(logits) @ support for logits in actions] for actions in distribution]
    else:
        means = distribution.mean(axis=2)
    np.testing.assert_allclose(agent._q_network(observation)[0], means, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["c51", "qr_dqn"])
def test_the_target_network_chooses_and_values_the_next_action(name, discrete, agents, batches):
    agent = agents(name, discrete)
    for variable in agent._q_network.variables:
        variable.assign(variable + 1.0)  # The trained network would choose another action.
    next_steps = batches(discrete, [1.0] * 6).transition().next_time_step
    values, _ = agent._target_q_network(next_steps.observation)
    chosen = agent._target_q_network.distribution(next_steps.observation).numpy()
    expected = chosen[np.arange(6), np.argmax(values, axis=1)]
    np.testing.assert_allclose(agent._compute_next_q_values(next_steps, ()), expected)


@pytest.mark.parametrize("name", ["c51", "qr_dqn"])
def test_losses_and_errors_of_each_transition_are_returned(name, discrete, agents, batches):
    loss = agents(name, discrete).train(batches(discrete, [1.0, 0.0, 1.0]).transition())
    assert loss.extra.td_loss.shape == loss.extra.td_error.shape == (3,)
    np.testing.assert_allclose(loss.loss, np.mean(loss.extra.td_loss), rtol=1e-5)


def test_a_range_without_values_is_refused(discrete, agents):
    with pytest.raises(ConfigurationError) as refusal:
        agents("c51", discrete, min_value=3.0, max_value=3.0)
    assert refusal.value.problems == (
        "agent.min_value: 3 cannot work; allowed: less than agent.max_value, 3",
    )
