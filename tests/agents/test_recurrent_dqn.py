"""DQN with an LSTM: its network along sequences, and the env steps that contribute to its loss."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.experience import StoredSequence
from actorlearner.agents.make import make_agent
from actorlearner.agents.recurrent_dqn_agent import lambda_returns
from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.errors import ConfigurationError

B, T, UNITS, BURN_IN = 3, 6, 5, 2
OBSERVATION = tf.TensorSpec([2], tf.float32)
SPECS = EnvironmentSpecs(
    OBSERVATION,
    tensor_spec.BoundedTensorSpec([], tf.int64, 0, 1),
    time_step.time_step_spec(OBSERVATION),
)


@pytest.fixture
def agent():
    tf.keras.utils.set_random_seed(0)
    keys = {"epsilon_start": 0.0, "epsilon_end": 0.0, "layers": [4], "learning_rate": 1e-2}
    config = DqnConfig(lstm_units=UNITS, sequence_length=T, burn_in=BURN_IN, **keys)
    return make_agent(Config(agent=config), SPECS).agent


def sequences(**parts) -> StoredSequence:
    random = np.random.default_rng(0)
    observation = random.normal(size=(B, T + 1, 2)).astype(np.float32)
    flags = np.zeros((B, T), np.bool_)
    stored = StoredSequence(
        observation=observation[:, :-1],
        action=random.integers(0, 2, (B, T)),
        reward=random.normal(size=(B, T)).astype(np.float32),
        discount=np.ones((B, T), np.float32),
        next_observation=observation[:, 1:],
        first=flags,
        last=flags,
        valid=~flags,
        policy_info=(),
        policy_state=tuple(random.normal(size=(2, B, UNITS)).astype(np.float32)),
        policy_train_step=np.zeros(B, np.int64),
        policy_generation=np.zeros(B, np.int64),
    )
    return tf.nest.map_structure(tf.constant, stored._replace(**parts))


def test_the_network_along_a_sequence_is_the_network_step_by_step(agent):
    stored = sequences(first=np.arange(T) == np.full((B, 1), 3))
    values, end = agent._q_network.unroll(stored.observation, stored.first, stored.policy_state)
    state = stored.policy_state
    for t in range(T):
        if t == 3:
            state = tf.nest.map_structure(tf.zeros_like, state)
        step, state = agent._q_network(stored.observation[:, t], network_state=state)
        np.testing.assert_allclose(values[:, t], step, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(end[0], state[0], rtol=1e-4, atol=1e-5)


def test_acting_keeps_the_lstm_state_within_an_episode_only(agent):
    act = PolicyFunction(agent.collect_policy, SPECS, B)
    observation = np.ones((B, 2), np.float32)
    act(observation, np.ones(B, np.bool_))
    assert all(np.all(part == 0) for part in act.state)
    act(observation, np.array([False, True, False]))
    _, (hidden, _) = agent._q_network(observation, network_state=agent.policy.get_initial_state(B))
    np.testing.assert_allclose(act.state[0][0], hidden[0], rtol=1e-5)
    assert np.all(act.state[0][1] == 0), "a new episode"


def loss(agent, **parts) -> float:
    return float(agent._loss(sequences(**parts), agent._td_errors_loss_fn, 0.9).loss)


def test_burn_in_invalid_and_truncated_env_steps_do_not_contribute_to_the_loss(agent):
    unchanged = loss(agent)
    flags, rewards = np.zeros((B, T), np.bool_), np.zeros((B, T), np.float32)
    rewards[:, :BURN_IN] = 100.0
    zeros = np.zeros((B, T), np.float32)
    assert loss(agent, reward=rewards) == loss(agent, reward=zeros), "the burn-in"
    flags[:, 4] = True
    rewards[:, 4] = 100.0
    invalid = ~flags
    assert loss(agent, valid=invalid, reward=rewards) == loss(agent, valid=invalid, reward=zeros)
    assert loss(agent, last=flags, reward=rewards) == loss(agent, last=flags, reward=zeros), "a truncation"
    terminated = np.where(flags, 0.0, 1.0).astype(np.float32)
    assert loss(agent, last=flags, discount=terminated, reward=rewards) > unchanged, "a termination counts"


def test_targets_are_lambda_returns():
    random = np.random.default_rng(1)
    rewards, discounts, values = random.normal(size=(3, B, T)).astype(np.float32)
    traces = random.uniform(size=(B, T - 1)).astype(np.float32)
    expected = rewards + discounts * values
    for t in range(T - 2, -1, -1):
        following = (1 - traces[:, t]) * values[:, t] + traces[:, t] * expected[:, t + 1]
        expected[:, t] = rewards[:, t] + discounts[:, t] * following
    arrays = map(tf.constant, (rewards, discounts, values, traces))
    np.testing.assert_allclose(lambda_returns(*arrays), expected, rtol=1e-5)


def test_traces_stop_at_the_end_of_an_episode(agent):
    agent._trace_decay = 1.0
    first, last = np.zeros((B, T), np.bool_), np.zeros((B, T), np.bool_)
    first[:, 4], last[:, 3] = True, True
    for discount in (0.0, 1.0):  # A termination, and a truncation.
        ends = {"first": first, "last": last, "discount": np.where(last, discount, 1.0).astype(np.float32)}
        later = np.zeros((B, T), np.float32)
        later[:, 4:] = 1.0
        before = agent._loss(sequences(**ends), _first_steps, 0.9).loss
        after = agent._loss(sequences(**ends, reward=sequences().reward + later), _first_steps, 0.9).loss
        assert float(before) == float(after)


def _first_steps(targets, values):
    """The loss of only the env steps before the end of the episode."""
    return tf.square(targets - values) * tf.constant([1.0, 1.0, 0.0, 0.0])


def test_it_learns_from_sequences(agent):
    stored, train = sequences(), tf.function(agent.train, autograph=False)
    losses = [float(train(stored).loss) for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0]
    assert train(stored).extra.td_error.shape == [B]


def test_a_burn_in_as_long_as_a_sequence_is_refused():
    config = DqnConfig(lstm_units=UNITS, sequence_length=T, burn_in=T)
    with pytest.raises(ConfigurationError, match=r"agent\.burn_in: 6 cannot work; allowed: less than"):
        make_agent(Config(agent=config), SPECS)
