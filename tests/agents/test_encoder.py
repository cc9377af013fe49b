"""The encoder's output for observations of any structure, and training of every algorithm on them."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import policy_step, time_step, trajectory

from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.agents.encoder import AgentSpecs, EncodedNetwork, ObservationEncoder, can_be_encoded
from actorlearner.agents.registry import agent_classes
from tests.support.algorithms import NEEDS_CONTINUOUS_ACTIONS

OWN = "examples.dueling_dqn:DuelingDqnBuilder"
SIZE = 4


def discrete(shape, low, high):
    return tensor_spec.BoundedTensorSpec(shape, tf.int64, low, high)


SPEC = {
    "image": tensor_spec.BoundedTensorSpec([12, 12, 3], tf.uint8, 0, 255),
    "joints": (tensor_spec.TensorSpec([3], tf.float32), tensor_spec.TensorSpec([2, 2], tf.float32)),
    "mode": discrete([], 0, 4),
}


def observations(seed):
    random = np.random.default_rng(seed)
    return {
        "image": random.integers(0, 256, (SIZE, 12, 12, 3)).astype(np.uint8),
        "joints": (
            random.normal(size=(SIZE, 3)).astype(np.float32),
            random.normal(size=(SIZE, 2, 2)).astype(np.float32),
        ),
        "mode": random.integers(0, 5, SIZE),
    }


def encode(spec, *values):
    return encoder_of(spec)(tf.constant(values, spec.dtype)).numpy().tolist()


def test_numbers_are_flattened():
    assert encode(tensor_spec.TensorSpec([2, 2], tf.float32), [[1, 2], [3, 4]]) == [[1, 2, 3, 4]]
    assert encode(tensor_spec.TensorSpec([], tf.float32), 5, 6) == [[5], [6]]
    assert encode(tensor_spec.TensorSpec([2], tf.bool), [True, False]) == [[1, 0]]


def test_bounded_integers_are_one_hot():
    assert encode(discrete([], 2, 4), 2, 4) == [[1, 0, 0], [0, 0, 1]]
    assert encode(discrete([2], 0, 2), [1, 2]) == [[0, 1, 0, 0, 0, 1]]
    assert encode(discrete([3], 0, 1), [0, 1, 1]) == [[0, 1, 1]]  # Binary numbers stay as they are.


def test_images_are_scaled():
    encoder = encoder_of(SPEC["image"])
    black, white = np.zeros((1, 12, 12, 3), np.uint8), np.full((1, 12, 12, 3), 255, np.uint8)
    encoder(black)
    kernel = encoder.trainable_variables[0]
    scaled = tf.nn.conv2d(white / np.float32(255), kernel, 1, "SAME")
    np.testing.assert_allclose(
        encoder._parts[0]._layers[0](white / np.float32(255)), tf.nn.relu(scaled), 1e-5
    )
    assert np.any(encoder(white) != encoder(black))


def encoder_of(spec):
    """The encoder of observations with this spec."""
    return ObservationEncoder(AgentSpecs(spec, (), ()))


@pytest.mark.parametrize("pixels", [1, 10, 84])
def test_small_and_large_images(pixels):
    spec = tensor_spec.TensorSpec([pixels, pixels, 4], tf.uint8)
    assert encoder_of(spec)(np.zeros((2, pixels, pixels, 4), np.uint8)).shape == (2, 256)


@pytest.mark.parametrize("pixels", [1, 10, 36, 42, 64, 84, 96])
def test_no_pixel_is_left_out(pixels):
    tf.keras.utils.set_random_seed(0)
    encoder = encoder_of(tensor_spec.TensorSpec([pixels, pixels, 1], tf.uint8))
    convolutions = encoder._parts[0]._layers[:-2]
    image = tf.random.uniform([1, pixels, pixels, 1])
    with tf.GradientTape() as tape:
        tape.watch(image)
        features = image
        for layer in convolutions:
            features = layer(features)
    assert np.all(tape.gradient(features, image) != 0.0)


@pytest.mark.parametrize("name", [*(name for name in agent_classes() if name != "ppo"), OWN])
def test_every_algorithm_trains_on_every_part(name, agents, specs_of, continuous, discrete):
    action = (continuous if name in NEEDS_CONTINUOUS_ACTIONS else discrete).action
    specs = specs_of(action, SPEC)
    agent = agents(name, specs)
    random = np.random.default_rng(0)
    if action.dtype.is_integer:
        actions = random.integers(0, 4, SIZE)
    else:
        actions = random.uniform([-2.0, 0.0], [2.0, 1.0], (SIZE, 2)).astype(np.float32)
    mid, ones = np.full(SIZE, time_step.StepType.MID), np.ones(SIZE, np.float32)
    experience = tf.nest.map_structure(
        tf.convert_to_tensor,
        trajectory.Transition(
            time_step.TimeStep(mid, ones, ones, observations(1)),
            policy_step.PolicyStep(actions),
            time_step.TimeStep(mid, ones, ones, observations(2)),
        ),
    )
    before = [variable.numpy() for variable in agent.policy.variables()]
    assert np.isfinite(agent.train(experience).loss)
    changed = [np.any(old != new) for old, new in zip(before, agent.policy.variables(), strict=True)]
    if name != "td3":  # Its actor is updated in every other train step.
        assert sum(changed) >= 8  # The convolutions and dense layers, with their biases.
    act = PolicyFunction(agent.collect_policy, specs, SIZE)
    chosen = act(observations(3), np.zeros(SIZE, np.bool_))
    assert np.shape(chosen) == np.shape(actions)


def test_critics_and_targets_have_encoders_of_their_own(agents, specs_of, continuous):
    agent = agents("sac", specs_of(continuous.action, SPEC))
    networks = (
        agent._critic_network_1,
        agent._critic_network_2,
        agent._target_critic_network_1,
        agent._actor_network,
    )
    identities = [id(variable) for each in networks for variable in each.variables]
    assert len(identities) == len(set(identities))


def test_a_single_vector_is_not_encoded(agents, continuous):
    assert not isinstance(agents("sac", continuous)._actor_network, EncodedNetwork)


def in_a_dict(vector):
    return {"joints": vector}


def in_a_tuple(vector):
    return (vector,)


@pytest.mark.parametrize("nest", [in_a_dict, in_a_tuple])
@pytest.mark.parametrize("name", ["sac", "dqn", "ppo"])  # With a critic of actions, without one, and PPO.
def test_a_single_vector_may_be_in_a_dict_or_a_tuple(name, nest, agents, specs_of, continuous, discrete):
    action = (continuous if name in NEEDS_CONTINUOUS_ACTIONS else discrete).action
    specs = specs_of(action, nest(tensor_spec.TensorSpec([3], tf.float32)))
    act = PolicyFunction(agents(name, specs).collect_policy, specs, SIZE)
    chosen = act(nest(np.zeros((SIZE, 3), np.float32)), np.zeros(SIZE, np.bool_))
    assert np.shape(chosen) == (SIZE, *action.shape)


@pytest.mark.parametrize("name", agent_classes())
def test_the_users_own_layer_takes_observations_that_the_encoder_refuses(
    name, agents, specs_of, continuous, discrete
):
    action = (continuous if name in NEEDS_CONTINUOUS_ACTIONS else discrete).action
    nodes = tensor_spec.BoundedTensorSpec([3], tf.int64, 0, 99_999)
    assert not can_be_encoded(nodes)
    specs = dataclasses.replace(specs_of(action, nodes), own_encoder=lambda _: Scale())
    act = PolicyFunction(agents(name, specs).collect_policy, specs, SIZE)
    assert np.shape(act(np.zeros((SIZE, 3), np.int64), np.zeros(SIZE, np.bool_))) == (SIZE, *action.shape)


class Scale(tf.keras.layers.Layer):
    """A user's own layer."""

    def call(self, nodes):
        return tf.cast(nodes, tf.float32) / 100_000


@pytest.mark.parametrize(
    ("shape", "taken"),
    [([84, 84, 4], True), ([8, 8, 111], True), ([128], True), ([84, 84], False), ([4, 84, 84], False)],
)
def test_images_with_their_channels_first_or_without_any_are_refused(shape, taken):
    assert can_be_encoded(tensor_spec.BoundedTensorSpec(shape, tf.uint8, 0, 255)) is taken
