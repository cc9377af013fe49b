"""SimBa: its networks against the formula, written out in NumPy, and what its agent is made of."""

import numpy as np
import pytest
import tensorflow as tf

from actorlearner.agents.configuration import load_config
from actorlearner.agents.make import make_agent
from actorlearner.agents.simba_networks import ResidualBody, ResidualCritic


def normalised(features):
    centred = features - features.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)


def body(weights, inputs, blocks):
    dense = [weights[i : i + 2] for i in range(0, len(weights), 2)]
    features = inputs @ dense[0][0] + dense[0][1]
    for block in range(blocks):
        (wide, wide_bias), (narrow, narrow_bias) = dense[1 + 2 * block : 3 + 2 * block]
        features = features + np.maximum(normalised(features) @ wide + wide_bias, 0) @ narrow + narrow_bias
    return normalised(features)


@pytest.mark.parametrize("blocks", [1, 2])
def test_the_body_adds_blocks_of_normalised_features(blocks):
    layer = ResidualBody(8, blocks)
    inputs = tf.random.stateless_normal([5, 3], seed=[1, 2])
    features = layer(inputs).numpy()
    assert layer.variables[0].shape == [3, 8]
    assert {tuple(v.shape) for v in layer.variables} >= {(8, 32), (32, 8)}
    np.testing.assert_allclose(
        features, body([v.numpy() for v in layer.variables], inputs.numpy(), blocks), rtol=1e-4, atol=1e-5
    )


def test_the_critic_takes_observation_and_action(continuous):
    critic = ResidualCritic((continuous.observation, continuous.action), 8, 1)
    observation, action = tf.random.normal([4, 3]), tf.random.normal([4, 2])
    value, _ = critic((observation, action))
    *weights, last, bias = [v.numpy() for v in critic.variables]
    inputs = np.concatenate([observation, action], axis=1)
    np.testing.assert_allclose(value, (body(weights, inputs, 1) @ last + bias)[:, 0], rtol=1e-4, atol=1e-5)


def test_observations_are_normalised_unless_configured_otherwise(continuous):
    assert make_agent(load_config("simba_halfcheetah"), continuous).normalizer is not None
    config = load_config("simba_halfcheetah", ["agent.observation_normalizer=false"])
    assert make_agent(config, continuous).normalizer is None
