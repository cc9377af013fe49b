"""Noise that is a function of the state for several env steps."""

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.agents.make import make_agent
from actorlearner.agents.ppo import PpoBuilder, PpoConfig
from actorlearner.agents.sac import SacConfig
from actorlearner.agents.tqc import TqcConfig
from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.errors import ConfigurationError

OBSERVATION = tf.TensorSpec([3], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0])
INTERVAL = 3


def specs_of(action):
    return EnvironmentSpecs(OBSERVATION, action, time_step.time_step_spec(OBSERVATION))


def agent_of(action=ACTION, **keys):
    tf.keras.utils.set_random_seed(0)
    config = PpoConfig(**{"noise_interval": INTERVAL, "actor_layers": [16, 8], **keys})
    return make_agent(Config(agent=config), specs_of(action)).agent


def sac_policy(config_class=SacConfig, **keys):
    tf.keras.utils.set_random_seed(0)
    config = config_class(**{"noise_interval": INTERVAL, "actor_layers": [16, 8], **keys})
    return make_agent(Config(agent=config), specs_of(ACTION)).agent.collect_policy


def deviations(policy, actions, observation):
    """The differences of actions from their means, in the actions' units."""
    step = time_step.restart(tf.constant(observation), len(observation))
    distribution = policy.distribution(step, policy.get_initial_state(len(observation))).action
    return actions - distribution.mean(), distribution


def test_noise_stays_the_same_function_of_the_state_until_it_is_drawn_again():
    policy = agent_of().collect_policy
    act = PolicyFunction(policy, specs_of(ACTION), 2)
    state = np.full((2, 3), 0.3, np.float32)
    seen = []
    for number in range(3 * INTERVAL):
        first = np.array([number == 0, number in (0, 4)])  # The second environment begins an episode at 4.
        act(state, first)
        seen.append(deviations(policy, act.info.action, state)[0])
    seen = np.array(seen)
    same = np.all(np.isclose(seen[1:], seen[:-1], atol=1e-6), axis=-1)
    drawn = [set(np.flatnonzero(~same[:, environment]) + 1) for environment in range(2)]
    assert drawn == [{3, 6}, {3, 4, 7}]
    assert not np.any(np.isclose(seen[0, 0], seen[0, 1])), "each environment has its own"
    other = np.full((2, 3), -0.8, np.float32)
    act(other, np.zeros(2, np.bool_))
    act(state, np.zeros(2, np.bool_))
    assert not np.any(np.isclose(deviations(policy, act.info.action, state)[0], seen[-1]))


def test_sampled_noise_has_the_standard_deviation_used_by_the_loss():
    policy = agent_of(initial_std=2.0).collect_policy
    count = 4_000
    act = PolicyFunction(policy, specs_of(ACTION), count)
    state = np.tile(np.array([0.5, -1.0, 2.0], np.float32), (count, 1))
    act(state, np.ones(count, np.bool_))
    drawn, distribution = deviations(policy, act.info.action, state)
    (wide, narrow) = stddev = distribution.stddev()[0].numpy()
    np.testing.assert_allclose(np.std(drawn, axis=0), stddev, rtol=0.05)
    np.testing.assert_allclose(act.info.log_probability, distribution.log_prob(act.info.action), atol=1e-4)
    assert wide == pytest.approx(4 * narrow, rel=1e-3), "halves of the ranges are 2 and 0.5"


def test_the_deviation_is_learned_and_leaves_the_layers_alone():
    network = agent_of()._actor_net
    with tf.GradientTape() as tape:
        deviation = network(tf.ones([1, 3]))[0].stddev()
    gradients = tape.gradient(deviation, network.trainable_variables)
    pairs = zip(network.trainable_variables, gradients, strict=True)
    learned = [variable.name for variable, gradient in pairs if gradient is not None]
    assert [name.partition(":")[0] for name in learned] == ["log_std"]


def test_the_greedy_policy_has_neither_noise_nor_a_state():
    agent = agent_of()
    assert agent.policy.get_initial_state(4) == ()
    state = np.ones((4, 3), np.float32)
    act = PolicyFunction(agent.policy, specs_of(ACTION), 4)
    assert len(np.unique(act(state, np.ones(4, np.bool_)), axis=0)) == 1


@pytest.mark.parametrize(
    "policy",
    [{}, {"config_class": TqcConfig}, {"observation_normalizer": True}, {"actor_layers": []}],
    ids=["sac", "tqc", "normalizer", "no hidden layer"],
)
def test_a_single_action_of_sac_is_drawn_as_without_smooth_noise(policy):
    policy = sac_policy(**policy)
    count = 4_000
    state = np.tile(np.array([0.5, -1.0, 2.0], np.float32), (count, 1))
    drawn = PolicyFunction(policy, specs_of(ACTION), count)(state, np.ones(count, np.bool_))
    step = time_step.restart(tf.constant(state[:1]), 1)
    distribution = policy.distribution(step, policy.get_initial_state(1)).action
    expected = distribution.sample(count, seed=1).numpy()[:, 0]
    assert np.all(np.std(drawn, axis=0) > 0.05)
    assert np.all((drawn >= ACTION.minimum) & (drawn <= ACTION.maximum))
    for element in range(2):
        assert scipy.stats.ks_2samp(drawn[:, element], expected[:, element]).pvalue > 0.001


def test_actions_of_sac_change_smoothly():
    act = PolicyFunction(sac_policy(), specs_of(ACTION), 2)
    state = np.full((2, 3), 0.3, np.float32)
    actions = np.array([act(state, np.full(2, number == 0)) for number in range(2 * INTERVAL - 2)])
    same = np.all(np.isclose(actions[1:], actions[:-1], atol=1e-6), axis=-1)
    assert [list(np.flatnonzero(~same[:, environment]) + 1) for environment in range(2)] == [[INTERVAL]] * 2
    assert not np.any(np.isclose(actions[0, 0], actions[0, 1])), "each environment has its own"
    near, far = act(state + 0.01, np.zeros(2, np.bool_)), act(-state, np.zeros(2, np.bool_))
    assert np.all(np.abs(near - actions[-1]) < np.abs(far - actions[-1]))


def test_the_noise_of_sac_has_no_variables():
    smooth, plain = sac_policy(), sac_policy(noise_interval=None)
    assert [v.shape for v in smooth.variables()] == [v.shape for v in plain.variables()]


def test_sequences_keep_the_state():
    _, state = PpoBuilder().policy_specs(PpoConfig(noise_interval=2), specs_of(ACTION))
    assert state == agent_of(actor_layers=[64, 64]).collect_policy.policy_state_spec


@pytest.mark.parametrize("keys", [{"lstm_units": 4}, {"actor_layers": []}])
def test_unsupported_combinations_are_refused(keys):
    with pytest.raises(ConfigurationError) as refusal:
        agent_of(**keys)
    (line,) = refusal.value.problems
    assert line.startswith("agent.noise_interval: 3 cannot work; allowed: null, with agent.lstm_units")


def test_discrete_actions_are_refused():
    with pytest.raises(ConfigurationError, match=r"ppo with agent\.noise_interval needs continuous actions"):
        agent_of(tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3))
