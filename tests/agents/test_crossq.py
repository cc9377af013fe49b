"""CrossQ: its targets against the formula, its normalisation, and the period of its actor."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from actorlearner.agents.batch_normalized import NormalizedDense
from actorlearner.errors import ConfigurationError

DISCOUNT = [1.0, 0.0, 1.0, 1.0, 0.0]


def normalized(values, mean, variance):
    return (values - mean) / np.sqrt(variance + 1e-3)


def test_a_layer_normalises_with_the_batch_and_keeps_running_moments():
    layer = NormalizedDense(4, 3)
    layer.scale.assign([1.0, 2.0, 3.0])
    layer.offset.assign([0.5, -0.5, 0.0])
    inputs = np.random.default_rng(0).normal(1.0, 3.0, (50, 4)).astype(np.float32)
    linear = inputs @ layer.kernel.numpy()
    mean, variance = linear.mean(axis=0), linear.var(axis=0)
    scale, offset = layer.scale.numpy(), layer.offset.numpy()

    expected = np.maximum(0.0, normalized(linear, mean, variance) * scale + offset)
    np.testing.assert_allclose(layer(inputs, training=True), expected, atol=1e-4)
    np.testing.assert_allclose(layer.mean, 0.01 * mean, rtol=1e-4)
    # The fused operation reports the unbiased variance.
    np.testing.assert_allclose(layer.variance, 0.99 + 0.01 * linear.var(axis=0, ddof=1), rtol=1e-4)

    acting = np.maximum(0.0, normalized(linear, layer.mean.numpy(), layer.variance.numpy()) * scale + offset)
    np.testing.assert_allclose(layer(inputs), acting, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(layer.kernel, axis=0), 1.0, rtol=1e-5)


def test_the_output_does_not_depend_on_the_size_of_the_weights():
    layer = NormalizedDense(4, 3)
    inputs = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    before = layer(inputs, training=True)
    layer.kernel.assign(30.0 * layer.kernel)
    # Not exactly, because of what is added to the variance.
    np.testing.assert_allclose(layer(inputs, training=True), before, atol=5e-3)


@pytest.mark.usefixtures("eagerly")
def test_the_loss_of_the_critics(continuous, agents, batches, monkeypatch):
    agent = agents("crossq", continuous, gamma=0.9, initial_alpha=0.5, critic_learning_rate=1e-12)
    batch = batches(continuous, DISCOUNT)
    drawn = {}
    sample = agent._actor.call

    def remember(observation, *arguments, **keywords):
        distribution, state = sample(observation, *arguments, **keywords)
        if len(drawn) == 0:
            action = distribution.sample()
            drawn["action"], drawn["log_prob"] = action.numpy(), distribution.log_prob(action).numpy()
            monkeypatch.setattr(distribution, "sample", lambda: action, raising=False)
        return distribution, state

    monkeypatch.setattr(agent._actor, "call", remember)
    losses = agent.train(batch.transition()).extra

    observations = np.concatenate([batch.observation, batch.next_observation])
    actions = np.concatenate([batch.action, drawn["action"]])
    values, following = zip(
        *(np.split(critic(observations, actions, training=True).numpy(), 2) for critic in agent._critics),
        strict=True,
    )
    soft = np.minimum(*following) - 0.5 * drawn["log_prob"]
    target = batch.reward + 0.9 * batch.discount * soft
    expected = sum(np.mean((value - target) ** 2) for value in values)
    assert losses.critic_loss.numpy() == pytest.approx(expected, rel=1e-3)


def test_weights_keep_norm_1_and_acting_moves_no_moments(continuous, agents, batches):
    agent = agents("crossq", continuous, actor_update_period=1, actor_learning_rate=0.1)
    layers = [*agent._actor.hidden, *agent._critics[0].hidden, *agent._critics[1].hidden]
    before = [layer.kernel.numpy() for layer in layers]
    for _ in range(3):
        agent.train(batches(continuous, DISCOUNT).transition())
    for layer, kernel in zip(layers, before, strict=True):
        np.testing.assert_allclose(np.linalg.norm(layer.kernel, axis=0), 1.0, rtol=1e-5)
        assert not np.allclose(layer.kernel, kernel)
        assert not np.allclose(layer.mean, 0.0)
    means = [layer.mean.numpy() for layer in layers]
    agent._critics[0](tf.ones([5, 3]), tf.ones([5, 2]))
    agent._actor(tf.ones([5, 3]))
    for layer, mean in zip(layers, means, strict=True):
        np.testing.assert_array_equal(layer.mean, mean)


def test_the_actor_and_alpha_follow_in_their_period(continuous, agents, batches):
    agent = agents("crossq", continuous, actor_update_period=3)
    alphas, critics = [1.0], []
    for _ in range(6):
        losses = agent.train(batches(continuous, DISCOUNT).transition()).extra
        alphas.append(losses.alpha.numpy())
        critics.append(losses.critic_loss.numpy())
    assert [later != earlier for earlier, later in itertools.pairwise(alphas)] == 2 * [True, False, False]
    assert len(set(critics)) == 6


def test_running_moments_belong_to_the_policy(continuous, agents):
    agent = agents("crossq", continuous)
    variables = {id(variable) for variable in agent.collect_policy.variables()}
    for layer in agent._actor.hidden:
        assert {id(layer.mean), id(layer.variance)} <= variables


def test_a_delayed_actor_is_refused_with_several_replicas(continuous, agents):
    with (
        tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope(),
        pytest.raises(ConfigurationError, match=r"agent\.actor_update_period: 3 cannot work with 2 replicas"),
    ):
        agents("crossq", continuous)
