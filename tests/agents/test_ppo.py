"""PPO: its policy, its loss and its masks."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.agents.experience import StoredSequence
from actorlearner.agents.make import make_agent
from actorlearner.agents.ppo import PpoConfig
from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.errors import ConfigurationError

SIZE, F, T = 3, 2, 5
OBSERVATION = {
    "mask": tf.TensorSpec([4], tf.float32),
    "picture": tf.TensorSpec([6, 6, 1], tf.uint8),
    "vector": tf.TensorSpec([2], tf.float32),
}
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3)
TWO = tensor_spec.BoundedTensorSpec([2], tf.int32, 0, [2, 3])
CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0])


def specs_of(action):
    return EnvironmentSpecs(OBSERVATION, action, time_step.time_step_spec(OBSERVATION))


def parts_of(action, **keys):
    tf.keras.utils.set_random_seed(0)
    return make_agent(Config(agent=PpoConfig(**{"initial_std": 3.0, **keys})), specs_of(action))


def observations(*shape):
    random = np.random.default_rng(0)
    return {
        "mask": np.broadcast_to(np.array([0, 1, 0, 1], np.float32), (*shape, 4)).copy(),
        "picture": random.integers(0, 255, (*shape, 6, 6, 1)).astype(np.uint8),
        "vector": random.normal(size=(*shape, 2)).astype(np.float32),
    }


def test_actions_are_clipped_and_kept_as_they_were_drawn():
    act = PolicyFunction(parts_of(CONTINUOUS).agent.collect_policy, specs_of(CONTINUOUS), SIZE)
    actions = act(observations(SIZE), np.zeros(SIZE, np.bool_))
    low, high = np.array([-2.0, 0.0]), np.array([2.0, 1.0])
    np.testing.assert_array_equal(actions, np.clip(act.info.action, low, high))
    assert np.any(actions != act.info.action), "a deviation of three ranges leaves the bounds"


def test_the_probability_is_that_of_the_distribution():
    parts = parts_of(CONTINUOUS)
    policy = parts.agent.collect_policy
    act = PolicyFunction(policy, specs_of(CONTINUOUS), SIZE)
    act(observations(SIZE), np.zeros(SIZE, np.bool_))
    step = time_step.restart(tf.nest.map_structure(tf.constant, observations(SIZE)), SIZE)
    distribution = policy.distribution(step).action
    np.testing.assert_allclose(
        act.info.log_probability, distribution.log_prob(act.info.action), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("action", "keys"), [(DISCRETE, {}), (CONTINUOUS, {}), (CONTINUOUS, {"noise_interval": 4})]
)
def test_a_train_step_makes_good_actions_more_probable(action, keys):
    parts = parts_of(action, learning_rate=1e-2, **keys)
    agent, policy = parts.agent, parts.agent.collect_policy
    act = PolicyFunction(policy, specs_of(action), F * T)
    flat = observations(F * T)
    act(flat, np.zeros(F * T, np.bool_))
    info = tf.nest.map_structure(lambda leaf: np.reshape(leaf, (F, T, *leaf.shape[1:])), act.info)
    reward = np.random.default_rng(1).normal(size=(F, T)).astype(np.float32)
    ones = np.ones((F, T), np.bool_)
    nested = tf.nest.map_structure(lambda leaf: leaf.reshape(F, T, *leaf.shape[1:]), flat)
    sequences = StoredSequence(
        nested, info.action, reward, 1 - ones, nested, ones, ones, ones, info, (), np.zeros(F), np.zeros(F)
    )
    sequences = tf.nest.map_structure(tf.constant, sequences._replace(discount=np.zeros((F, T), np.float32)))
    examples = agent.prepare(sequences)
    np.testing.assert_allclose(examples.returns, reward.ravel(), rtol=1e-5)
    train = tf.function(agent.train, autograph=False)
    before = float(train(examples).loss)
    for _ in range(20):
        after = float(train(examples).loss)
    assert after < before
    assert int(parts.train_step) == 21
    step = time_step.restart(tf.nest.map_structure(tf.constant, flat), F * T)
    distribution = policy.distribution(step, policy.get_initial_state(F * T)).action
    ratio = distribution.log_prob(act.info.action) - act.info.log_probability
    assert np.corrcoef(ratio, examples.advantage)[0, 1] > 0.5


def test_env_steps_that_are_not_valid_are_not_learned_from():
    parts = parts_of(DISCRETE)
    examples = parts.agent.prepare(_sequences(np.zeros((F, T), np.bool_)))
    loss = parts.agent.train(examples)
    assert float(loss.loss) == 0.0


def _sequences(valid):
    nested, zeros = observations(F, T), np.zeros((F, T), np.float32)
    info = parts_of(DISCRETE).agent.collect_policy.info_spec
    info = type(info)(zeros.astype(np.int32), zeros)
    flags = zeros.astype(np.bool_)
    return tf.nest.map_structure(
        tf.constant,
        StoredSequence(
            nested,
            zeros.astype(np.int32),
            zeros + 1,
            zeros,
            nested,
            flags,
            flags,
            valid,
            info,
            (),
            np.zeros(F),
            np.zeros(F),
        ),
    )


def test_a_mask_is_respected():
    for greedy in (False, True):
        parts = parts_of(DISCRETE, action_mask="mask")
        policy = parts.agent.policy if greedy else parts.agent.collect_policy
        act = PolicyFunction(policy, specs_of(DISCRETE), 100)
        chosen = act(observations(100), np.zeros(100, np.bool_))
        assert set(np.unique(chosen)) <= {1, 3}


@pytest.mark.parametrize(
    ("action", "mask"),
    [(CONTINUOUS, "mask"), (TWO, "mask"), (DISCRETE, "vector"), (DISCRETE, "absent")],
)
def test_a_mask_that_fits_no_action_is_refused(action, mask):
    with pytest.raises(ConfigurationError) as refusal:
        parts_of(action, action_mask=mask)
    assert refusal.value.problems[0].startswith(f'agent.action_mask: "{mask}" cannot work; allowed: ')


@pytest.mark.parametrize("action", [DISCRETE, CONTINUOUS])
def test_an_lstm_unrolled_along_sequences_matches_acting(action):
    parts = parts_of(action, lstm_units=8)
    agent = parts.agent
    act = PolicyFunction(agent.collect_policy, specs_of(action), F)
    seen = observations(F, T)
    first = np.zeros((F, T), np.bool_)
    first[:, 0] = first[1, 3] = True  # The second environment begins another episode in mid-sequence.
    state = tf.nest.map_structure(np.copy, act.state)
    infos = []
    for t in range(T):
        act(tf.nest.map_structure(lambda leaf, now=t: leaf[:, now], seen), first[:, t])
        infos.append(act.info)
    info = tf.nest.map_structure(lambda *leaves: np.stack(leaves, axis=1), *infos)
    examples = agent.prepare(_of_lstm(seen, first, info, state))
    hidden, _ = agent._actor_net.body.unroll(examples.steps.observation, examples.first, examples.state)
    distribution = agent._actor_net.head(hidden, examples.steps.observation)
    np.testing.assert_allclose(distribution.log_prob(info.action), info.log_probability, atol=1e-5)
    train = tf.function(agent.train, autograph=False)
    before = float(train(examples).loss)
    for _ in range(20):
        after = float(train(examples).loss)
    assert after < before


def test_a_truncated_episode_is_bootstrapped_with_its_own_lstm_state():
    agent = parts_of(DISCRETE, lstm_units=8, gamma=0.5).agent
    seen, following = observations(F, T), observations(F, T)
    following["vector"] = following["vector"] + 1.0
    first = np.zeros((F, T), np.bool_)
    first[:, 0] = first[:, 3] = True
    info = agent.collect_policy.info_spec
    info = type(info)(np.zeros((F, T), np.int32), np.zeros((F, T), np.float32))
    state = {"actor_network_state": (np.zeros((F, 8), np.float32),) * 2}
    sequences = _of_lstm(seen, first, info, state)
    last = np.zeros((F, T), np.bool_)
    last[:, 2] = True  # Truncated: its discount is 1.
    sequences = sequences._replace(
        next_observation=tf.nest.map_structure(tf.constant, following),
        discount=tf.ones((F, T)),
        last=tf.constant(last),
    )
    body, head = agent._actor_net.body, agent._value_net.head
    carried = (tf.zeros([F, 8]),) * 2
    for t in range(3):
        _, carried = body(tf.nest.map_structure(lambda leaf, now=t: leaf[:, now], seen), carried)
    hidden, _ = body(tf.nest.map_structure(lambda leaf: leaf[:, 2], following), carried)
    expected = sequences.reward[:, 2] + 0.5 * head(hidden)
    np.testing.assert_allclose(agent.prepare(sequences).steps.returns[:, 2], expected, rtol=1e-5)


def _of_lstm(seen, first, info, state):
    reward = np.random.default_rng(1).normal(size=(F, T)).astype(np.float32)
    sequences = StoredSequence(
        observation=seen,
        action=info.action,
        reward=reward,
        discount=np.zeros((F, T), np.float32),
        next_observation=seen,
        first=first,
        last=np.zeros((F, T), np.bool_),
        valid=np.ones((F, T), np.bool_),
        policy_info=info,
        policy_state=state,
        policy_train_step=np.zeros(F),
        policy_generation=np.zeros(F),
    )
    return tf.nest.map_structure(tf.constant, sequences)
