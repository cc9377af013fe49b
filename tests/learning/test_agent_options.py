"""What all agents take: normalised observations, own networks, first weights, learning rates."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.config.resolved import to_yaml
from actorlearner.config.schema import Config, LearnConfig
from actorlearner.errors import ConfigurationError
from actorlearner.learning.checkpoint import LearnerCheckpoint
from actorlearner.learning.warm_start import warm_start
from actorlearner.records.policy_directory import PolicyDirectory
from actorlearner.records.run_directory import RunDirectory
from tests.support.training import DQN, SPECS, fixed_dataset, make_training_graph

DEFAULT = tf.distribute.get_strategy()


def parts_of(**keys) -> AgentParts:
    tf.keras.utils.set_random_seed(5)
    return make_agent(Config(agent=dataclasses.replace(DQN, **keys)), SPECS)


def own_network(observation):
    """As users write it."""
    assert observation == SPECS.observation
    return tf.keras.layers.Dense(3, kernel_initializer="ones", name="own")


def test_the_learner_measures_observations_and_the_policy_normalises_them(tmp_path: Path) -> None:
    parts = parts_of(observation_normalizer=True)
    assert parts.normalizer is not None
    assert {id(v) for v in parts.normalizer.variables} <= {id(v) for v in parts.policy_variables}
    graph = make_training_graph(tmp_path, parts, lambda: fixed_dataset(6, 10))
    graph.train(10)
    moments = parts.normalizer._moments[0]
    assert float(moments.count) == 60
    observations = np.random.default_rng(0).normal(3.0, 2.0, (1_000, 4)).astype(np.float32)
    moments.count.assign(0.0)
    moments.mean.assign(tf.zeros(4))
    moments.m2.assign(tf.zeros(4))
    parts.normalizer.update(tf.constant(observations))
    normalized = parts.normalizer(tf.constant(observations)).numpy()
    np.testing.assert_allclose(normalized.mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(normalized.std(axis=0), 1.0, atol=1e-3)


def test_a_user_network_is_part_of_the_policy() -> None:
    parts = parts_of(networks="tests.learning.test_agent_options:own_network")
    assert any("own" in variable.name for variable in parts.policy_variables)


def test_a_missing_user_network_is_refused() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        parts_of(networks="tests.learning.test_agent_options:absent")
    assert refusal.value.problems[0].startswith('agent.networks: "tests.learning.test_agent_options:absent" ')


@pytest.mark.parametrize(("decay", "expected"), [("none", 0.01), ("linear", 0.005), ("cosine", 0.005)])
def test_learning_rates_follow_the_train_step(decay: str, expected: float) -> None:
    parts = parts_of(learning_rate_decay=decay, learning_rate_decay_steps=100)
    parts.train_step.assign(50)
    rate = parts.agent._optimizer._decayed_lr(tf.float32)
    assert float(rate) == pytest.approx(expected, rel=1e-5)


def test_learning_rates_decay_within_the_train_steps_of_the_run() -> None:
    agent = dataclasses.replace(DQN, learning_rate_decay="linear")
    parts = make_agent(Config(agent=agent, learn=LearnConfig(train_steps=200)), SPECS)
    parts.train_step.assign(50)
    rate = parts.agent._optimizer._decayed_lr(tf.float32)
    assert float(rate) == pytest.approx(0.0075, rel=1e-5)


def test_gradients_are_clipped_by_global_norm() -> None:
    assert parts_of(global_norm=0.5).agent._optimizer.global_clipnorm == 0.5
    assert parts_of().agent._optimizer.global_clipnorm is None


def test_a_warm_start_copies_the_weights_of_a_saved_policy(tmp_path: Path) -> None:
    trained = parts_of()
    for variable in trained.policy_variables:
        variable.assign_add(tf.ones_like(variable))
    policy = tmp_path / "policy"
    saved = PolicyDirectory(policy, trained.agent.policy, trained.train_step, Config(agent=DQN))
    saved.prepare({})
    saved.replace()
    fresh = parts_of()
    warm_start(str(policy), fresh, SPECS, DEFAULT)
    for ours, theirs in zip(fresh.policy_variables, trained.policy_variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for target, own in zip(
        fresh.agent._target_q_network.variables, fresh.agent._q_network.variables, strict=True
    ):
        np.testing.assert_array_equal(target, own)
    with pytest.raises(ConfigurationError):
        warm_start(str(policy), parts_of(layers=[9]), SPECS, DEFAULT)
    with pytest.raises(ConfigurationError) as refusal:
        warm_start(str(tmp_path / "absent"), fresh, SPECS, DEFAULT)
    assert refusal.value.problems[0].startswith("agent.start_from: ")


@pytest.mark.parametrize(
    ("names", "strategy"),
    [
        ("the run", DEFAULT),
        ("the checkpoint", DEFAULT),
        ("the run", tf.distribute.MirroredStrategy(["/cpu:0"])),
    ],
)
def test_a_warm_start_from_a_checkpoint_copies_all_weights_but_no_learning_rate(
    names: str, strategy: tf.distribute.Strategy, tmp_path: Path
) -> None:
    agent = dataclasses.replace(DQN, learning_rate=0.5, learning_rate_decay="linear")
    run = RunDirectory(tmp_path)
    run.config.write_text(to_yaml(Config(agent=agent)))
    trained = parts_of(learning_rate=0.5, learning_rate_decay="linear")
    for number, variable in enumerate(trained.agent.variables):
        variable.assign(tf.cast(tf.fill(variable.shape, number), variable.dtype))
    trained.train_step.assign(4)
    LearnerCheckpoint(run.learner_checkpoints, trained).save()
    with strategy.scope():
        fresh = parts_of(learning_rate=0.25)
    start = run.path if names == "the run" else run.learner_checkpoints / "ckpt-4"
    warm_start(str(start), fresh, SPECS, strategy)
    agents = fresh.agent, trained.agent
    for network in ("_q_network", "_target_q_network"):
        ours, theirs = (getattr(agent, network).variables for agent in agents)
        for own, saved in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(own, saved)
    assert int(fresh.train_step.numpy()) == 0
    assert float(fresh.agent._optimizer._decayed_lr(tf.float32)) == 0.25
