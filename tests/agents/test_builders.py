"""Properties that every algorithm must have."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.agents.registry import agent_classes, find_builder
from actorlearner.errors import ConfigurationError
from actorlearner.learning.group import variables_of
from tests.support.algorithms import NEEDS_CONTINUOUS_ACTIONS

DISCOUNT = [1.0, 0.0, 1.0, 1.0, 0.0]

OFF_POLICY = [name for name in agent_classes() if name != "ppo"]  # It has tests of its own.


@pytest.fixture(params=OFF_POLICY)
def name(request):
    return request.param


@pytest.fixture
def specs(name, continuous, discrete):
    return continuous if name in NEEDS_CONTINUOUS_ACTIONS else discrete


def trained(agent, experience):
    """The loss and all variables after a train step; the agent is then as it was before."""
    variables = variables_of(agent)
    initial = [variable.numpy() for variable in variables]
    tf.random.set_seed(9)
    loss = agent.train(experience).loss.numpy()
    found = [variable.numpy() for variable in variables]
    for variable, value in zip(variables, initial, strict=True):
        variable.assign(value)
    return loss, found


@pytest.mark.usefixtures("eagerly")
def test_transitions_train_as_two_step_trajectories_do(name, specs, agents, batches):
    """The value of the next observation counts unless the episode terminated."""
    batch = batches(specs, DISCOUNT)
    truncated = np.array([False, False, True, False, False])
    agent = agents(name, specs)

    loss, variables = trained(agent, batch.transition())
    stock_loss, stock_variables = trained(agent, batch.two_step_trajectory(truncated))

    assert loss == stock_loss
    assert len(variables) > 4
    for ours, stock in zip(variables, stock_variables, strict=True):
        np.testing.assert_array_equal(ours, stock)

    def loss_with_another_next_observation(row):
        batch = batches(specs, DISCOUNT)
        batch.next_observation[row] += 1.0
        return trained(agent, batch.transition())[0]

    assert loss_with_another_next_observation(1) == loss  # discount 0
    assert loss_with_another_next_observation(2) != loss  # discount 1


def test_policies_act_on_batches_within_bounds(name, specs, agents):
    agent = agents(name, specs)
    observation = tf.random.normal([7, 3])
    for policy in (agent.policy, agent.collect_policy):
        action = policy.action(time_step.restart(observation, 7)).action
        assert action.dtype == specs.action.dtype
        assert action.shape == [7, *specs.action.shape]
        assert np.all(action >= specs.action.minimum)
        assert np.all(action <= specs.action.maximum)


def test_shared_keys_reach_the_agent(name, specs, agents):
    default = find_builder(name).config_class().td_loss
    loss, expected = ("squared", 9.0) if default == "huber" else ("huber", 2.5)
    agent = agents(
        name,
        specs,
        gamma=0.9,
        reward_scale=0.5,
        gradient_clipping=2.0,
        td_loss=loss,
        debug_summaries=True,
        gradient_summaries=True,
    )
    assert (agent._gamma, agent._reward_scale_factor, agent._gradient_clipping) == (0.9, 0.5, 2.0)
    assert agent._debug_summaries
    assert agent._summarize_grads_and_vars
    error = agent._td_errors_loss_fn(tf.constant([3.0]), tf.constant([0.0]))
    np.testing.assert_allclose(error, [expected])


def test_train_steps_change_the_collect_policy_and_every_second_the_target_networks(
    name, specs, agents, batches
):
    agent = agents(name, specs, target_update_tau=0.25, target_update_period=2)
    network, target = {
        "sac": lambda: (agent._critic_network_1, agent._target_critic_network_1),
        "td3": lambda: (agent._critic_network_1, agent._target_critic_network_1),
        "tqc": lambda: (agent._critic_network_1, agent._target_critic_network_1),
        "ddpg": lambda: (agent._critic_network, agent._target_critic_network),
    }.get(name, lambda: (agent._q_network, agent._target_q_network))()
    policy = [variable.numpy() for variable in agent.collect_policy.variables()]
    start = target.variables[0].numpy()
    experience = batches(specs, DISCOUNT).transition()

    agent.train(experience)
    assert agent.train_step_counter.numpy() == 1
    changed = zip(policy, agent.collect_policy.variables(), strict=True)
    assert any((old != new.numpy()).any() for old, new in changed)
    np.testing.assert_array_equal(target.variables[0], start)
    agent.train(experience)
    np.testing.assert_allclose(
        target.variables[0], 0.75 * start + 0.25 * network.variables[0].numpy(), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize(
    ("observation", "described"),
    [
        (tensor_spec.TensorSpec([8, 8], tf.uint8), "uint8[8, 8]"),
        (tensor_spec.TensorSpec([2], tf.int64), "int64[2]"),
        (tensor_spec.BoundedTensorSpec([], tf.int64, 0, 5000), "int64 in 0..5000"),
        (
            {"a": tensor_spec.TensorSpec([2], tf.float32), "b": tensor_spec.TensorSpec([3], tf.string)},
            "float32[2], string[3]",
        ),
    ],
)
def test_observations_that_cannot_be_encoded_are_refused(
    name, specs, specs_of, agents, observation, described
):
    with pytest.raises(ConfigurationError) as refusal:
        agents(name, specs_of(specs.action, observation))
    (line,) = refusal.value.problems
    needs = "observations of floats, uint8 images [height, width, channels] and bounded integers"
    assert line.startswith(f"agent.name: {name} needs {needs}; this environment's are {described}")


def test_the_configuration_knows_its_builders_name(name):
    config_class = find_builder(name).config_class
    assert config_class().name == name
    assert all("doc" in field.metadata for field in dataclasses.fields(config_class))


def test_algorithms_are_found_without_loading_tensorflow():
    code = (
        "import sys\n"
        "from actorlearner.agents.registry import agent_classes, find_builder\n"
        "[find_builder(name).config_class() for name in agent_classes()]\n"
        "sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
