import math
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec

from actorlearner.errors import ConfigurationError


def shapes(network):
    return [tuple(variable.shape) for variable in network.variables if variable.shape.rank == 2]


def test_defaults_are_those_of_the_tutorial(continuous, agents):
    agent = agents("sac", continuous)
    assert agent._log_alpha.numpy() == 0.0
    assert agent._target_entropy == pytest.approx(-1.0)  # two action dimensions
    assert (agent._gamma, agent._reward_scale_factor, agent._gradient_clipping) == (0.99, 1.0, None)
    assert (agent._target_update_tau, agent._target_update_period) == (0.005, 1)
    assert shapes(agent._actor_network) == [(3, 256), (256, 256), (256, 4)]
    assert shapes(agent._critic_network_1) == [(5, 256), (256, 256), (256, 1)]
    assert agent._td_errors_loss_fn is tf.math.squared_difference


def test_the_critics_last_layer_starts_as_glorot_uniform(continuous, agents):
    for critic in (agents("sac", continuous)._critic_network_1, agents("sac", continuous)._critic_network_2):
        (last,) = (variable for variable in critic.variables if variable.shape == [256, 1])
        limit = math.sqrt(6 / (256 + 1))
        assert 0.9 * limit < np.abs(last).max() <= limit


def test_layer_norm_makes_critics_independent_of_the_size_of_their_hidden_units(continuous, agents, batches):
    agent = agents("sac", continuous, critic_layer_norm=True)
    batch = batches(continuous, [1.0, 0.0, 1.0])
    for critic in (agent._critic_network_1, agent._critic_network_2):
        before = critic((batch.observation, batch.action))[0].numpy()
        hidden = [variable for variable in critic.variables if variable.shape[-1] == 256]
        assert len(hidden) == 4  # Two layers; no variables of the normalisation.
        for variable in hidden:
            variable.assign(10.0 * variable)
        np.testing.assert_allclose(critic((batch.observation, batch.action))[0], before, rtol=1e-3, atol=1e-4)


def test_temperature_keys_reach_the_agent(continuous, agents):
    agent = agents("sac", continuous, initial_alpha=0.2, target_entropy=-3.5)
    assert agent._log_alpha.numpy() == pytest.approx(math.log(0.2))
    assert agent._target_entropy == pytest.approx(-3.5)


def test_alpha_learns_from_the_actions_of_the_actors_loss(continuous, agents, batches, monkeypatch):
    agent = agents("sac", continuous, initial_alpha=0.2)
    draw = mock.Mock(wraps=agent._actions_and_log_probs)
    monkeypatch.setattr(agent, "_actions_and_log_probs", draw)
    losses = agent.train(batches(continuous, [1.0, 0.0, 1.0]).transition()).extra
    assert draw.call_count == 2  # the next observations' actions, and the actor's
    assert losses.alpha_loss.numpy() == pytest.approx(math.log(0.2) * (losses.entropy.numpy() + 1.0))


def test_the_target_entropy_is_that_of_actions_scaled_to_one(agents, specs_of):
    """In units of a tenth, a uniform policy has less entropy than minus half the number of actions."""
    for half in (0.1, 1.0, 100.0):
        specs = specs_of(tensor_spec.BoundedTensorSpec([2], tf.float32, 0.0, 2 * half, "action"))
        agent = agents("sac", specs)
        assert agent._target_entropy == pytest.approx(-1.0 + 2 * math.log(half))


def test_layers_reach_the_networks(continuous, agents):
    agent = agents(
        "sac",
        continuous,
        actor_layers=[8],
        critic_observation_layers=[7],
        critic_action_layers=[6],
        critic_joint_layers=[5, 4],
    )
    assert shapes(agent._actor_network) == [(3, 8), (8, 4)]
    assert shapes(agent._critic_network_2) == [(3, 7), (2, 6), (13, 5), (5, 4), (4, 1)]


def test_learning_rates_reach_their_optimizers(continuous, agents):
    agent = agents(
        "sac", continuous, actor_learning_rate=0.1, critic_learning_rate=0.2, alpha_learning_rate=0.3
    )
    optimizers = (agent._actor_optimizer, agent._critic_optimizer, agent._alpha_optimizer)
    rates = [optimizer.learning_rate.numpy() for optimizer in optimizers]
    np.testing.assert_allclose(rates, [0.1, 0.2, 0.3])


def test_the_policys_standard_deviation_is_bounded_and_never_0(continuous, agents):
    network = agents("sac", continuous)._actor_network
    for scale, log_deviation in ((1e4, 2.0), (-1e4, -20.0)):
        projection = network.layers[-1]._projection_layer
        projection.bias.assign([0.0, 0.0, scale, scale])
        distribution, _ = network(tf.zeros([1, 3]), step_type=(), network_state=())
        deviation = distribution.input_distribution.stddev().numpy()
        np.testing.assert_allclose(deviation, np.exp([[log_deviation] * 2]), rtol=1e-5)


def spec(shape, dtype, low, high):
    return tensor_spec.BoundedTensorSpec(shape, dtype, low, high)


@pytest.mark.parametrize("name", ["sac", "td3"])
@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (spec([], tf.int64, 0, 1), "; this environment's are int64 in 0..1: use dqn"),
        (spec([2], tf.int64, 0, 1), "; this environment's are int64[2] in 0..1"),  # No algorithm takes them.
        (
            (spec([1], tf.float32, -1, 1), spec([2], tf.float32, -1, 1)),
            " in one float vector; this environment's are float32[1] in -1..1, float32[2] in -1..1",
        ),
        (
            spec([2], tf.float32, [-1, -np.inf], 1),
            " with finite bounds; this environment's are float32[2] in [-inf to -1]..1",
        ),
    ],
)
def test_unsupported_action_spaces_are_refused(specs_of, agents, name, action, reason):
    with pytest.raises(ConfigurationError) as refusal:
        agents(name, specs_of(action))
    assert refusal.value.problems == (f"agent.name: {name} needs continuous actions{reason}",)


def test_gyms_unbounded_actions_are_refused(specs_of, agents):
    import gym
    from tf_agents.environments import gym_wrapper

    space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    with pytest.raises(ConfigurationError, match="continuous actions with finite bounds"):
        agents("sac", specs_of(tensor_spec.from_spec(gym_wrapper.spec_from_gym_space(space))))


@pytest.mark.parametrize("name", ["sac", "tqc"])
def test_the_critics_share_no_variables(name, continuous, agents):
    agent = agents(name, continuous)
    networks = (
        agent._critic_network_1,
        agent._critic_network_2,
        agent._target_critic_network_1,
        agent._target_critic_network_2,
    )
    variables = [variable.ref() for network in networks for variable in network.variables]
    assert len(set(variables)) == len(variables) == 4 * len(networks[0].variables) > 0
    assert not np.allclose(networks[0].variables[0], networks[1].variables[0])
