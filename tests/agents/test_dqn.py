import numpy as np
import pytest
import tensorflow as tf
from tf_agents.agents.dqn import dqn_agent
from tf_agents.policies import policy_saver
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.environments.specs import load_specs
from actorlearner.errors import ConfigurationError

DECAY = {"epsilon_start": 1.0, "epsilon_end": 0.2, "epsilon_decay_steps": 100}


def greedy_fraction(act, agent, observation):
    greedy = agent.policy.action(time_step.restart(observation, len(observation))).action
    return float(np.mean(act().numpy() == greedy.numpy()))


def test_epsilon_decays_with_the_train_step_inside_one_graph(discrete, agents):
    agent = agents("dqn", discrete, **DECAY)
    observation = tf.random.normal([4000, 3])
    # Traced once, as an actor does; the train step then changes as when an actor pulls it.
    step = time_step.restart(observation, 4000)
    act = tf.function(lambda: agent.collect_policy.action(step).action, autograph=False)
    # A random action is the greedy one of four in a quarter of the cases. The standard deviation of a
    # fraction of 4,000 is below 0.008.
    for train_step, epsilon in ((0, 1.0), (50, 0.6), (100, 0.2), (1000, 0.2)):
        agent.train_step_counter.assign(train_step)
        expected = 1 - epsilon + epsilon / 4
        assert greedy_fraction(act, agent, observation) == pytest.approx(expected, abs=0.04)
    assert act.experimental_get_tracing_count() == 1


def test_epsilon_depends_on_the_actor_index_modulo_the_number_of_actors():
    spread = DqnConfig(layers=[4], epsilon_start=0.4, epsilon_end=0.4, epsilon_spread=7.0)
    config = Config(environment=EnvironmentConfig("gym", "CartPole-v1"), agent=spread)
    specs = load_specs(config.environment)

    def epsilon(index):
        return float(make_agent(config, specs, actor=(index, 4)).agent._epsilon_greedy())

    np.testing.assert_allclose([epsilon(0), epsilon(3)], [0.4, 0.4**8], rtol=1e-5)
    np.testing.assert_allclose([epsilon(4), epsilon(62479)], [epsilon(0), epsilon(3)])


def test_a_saved_collect_policy_keeps_the_epsilon_of_its_train_step(discrete, agents, tmp_path):
    agent = agents("dqn", discrete, epsilon_start=1.0, epsilon_end=0.0, epsilon_decay_steps=10)
    agent.train_step_counter.assign(10)
    policy_saver.PolicySaver(agent.collect_policy, train_step=agent.train_step_counter).save(str(tmp_path))
    saved = tf.saved_model.load(str(tmp_path))
    step = time_step.restart(tf.random.normal([200, 3]), 200)
    np.testing.assert_array_equal(saved.action(step).action, agent.policy.action(step).action)


@pytest.mark.parametrize(
    ("double", "agent_class"), [(True, dqn_agent.DdqnAgent), (False, dqn_agent.DqnAgent)]
)
def test_double_selects_double_dqn(discrete, agents, double, agent_class):
    assert type(agents("dqn", discrete, double=double)) is agent_class


def test_layers_and_learning_rate_reach_the_agent(discrete, agents):
    agent = agents("dqn", discrete, layers=[8, 7], learning_rate=0.1)
    kernels = [variable.shape for variable in agent._q_network.variables if variable.shape.rank == 2]
    assert kernels == [[3, 8], [8, 7], [7, 4]]
    np.testing.assert_allclose(agent._optimizer.learning_rate, 0.1)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (
            tensor_spec.BoundedTensorSpec([6], tf.float32, -1, 1),
            "; this environment's are float32[6] in -1..1: use sac or td3",
        ),
        (
            tensor_spec.BoundedTensorSpec([2], tf.int32, 0, [2, 3]),
            " from 0 up; this environment's are int32[2] in 0..[2 to 3]",
        ),
        (
            tensor_spec.BoundedTensorSpec([], tf.int64, 1, 3),
            " from 0 up; this environment's are int64 in 1..3",
        ),
    ],
)
def test_unsupported_action_spaces_are_refused(specs_of, agents, action, reason):
    with pytest.raises(ConfigurationError) as refusal:
        agents("dqn", specs_of(action))
    assert refusal.value.problems == (f"agent.name: dqn needs one discrete action{reason}",)
