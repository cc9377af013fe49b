"""Policies as functions on batches of observations."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tf_agents.policies import greedy_policy
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import policy_step, time_step

from actorlearner.acting.policy_function import PolicyFunction, RandomPolicy
from actorlearner.agents.encoder import AgentSpecs
from actorlearner.agents.registry import agent_classes, find_builder
from actorlearner.environments.specs import EnvironmentSpecs
from tests.support.algorithms import NEEDS_CONTINUOUS_ACTIONS

BATCH = 5
OBSERVATION = tf.TensorSpec([3], tf.float32, "observation")
CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0], "action")
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 3, "action")
NESTED = {"arm": CONTINUOUS, "gripper": DISCRETE}
FIRST = np.array([True, False, True, False, False])


def specs_of(action: Any) -> AgentSpecs:
    return AgentSpecs(OBSERVATION, action, time_step.time_step_spec(OBSERVATION))


def observations(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(BATCH, 3)).astype(np.float32)


def make_agent(name: str, specs: AgentSpecs, **keys: Any) -> Any:
    builder = find_builder(name)
    agent = builder.make_agent(builder.config_class(**keys), specs, tf.Variable(0, dtype=tf.int64))
    agent.initialize()
    return agent


@pytest.mark.parametrize(
    ("name", "action", "keys"),
    [
        ("sac", CONTINUOUS, {"actor_layers": [8], "critic_joint_layers": [8]}),
        ("dqn", DISCRETE, {"layers": [8]}),
    ],
)
def test_it_returns_the_actions_of_the_policy(name: str, action: Any, keys: dict[str, Any]) -> None:
    specs = specs_of(action)
    agent = make_agent(name, specs, **keys)
    policy = greedy_policy.GreedyPolicy(agent.policy)
    function = PolicyFunction(policy, specs, BATCH)
    for seed in range(3):
        batch = observations(seed)
        actions = function(batch, FIRST)
        expected = policy.action(time_step.restart(tf.constant(batch), BATCH)).action
        assert actions.dtype == action.dtype.as_numpy_dtype
        assert actions.shape == (BATCH, *action.shape)
        np.testing.assert_allclose(actions, expected.numpy(), rtol=1e-5, atol=1e-6)


def test_changed_variables_change_the_actions() -> None:
    specs = specs_of(CONTINUOUS)
    agent = make_agent("sac", specs, actor_layers=[8], critic_joint_layers=[8])
    function = PolicyFunction(greedy_policy.GreedyPolicy(agent.policy), specs, BATCH)
    before = function(observations(), FIRST)
    for variable in agent.policy.variables():
        variable.assign_add(tf.ones_like(variable))
    after = function(observations(), FIRST)
    assert np.all(np.any(before != after, axis=1))
    expected = greedy_policy.GreedyPolicy(agent.policy).action(
        time_step.restart(tf.constant(observations()), BATCH)
    )
    np.testing.assert_allclose(after, expected.action.numpy(), rtol=1e-5, atol=1e-6)


class Recording:
    """A policy with nested actions that answers with what it was asked."""

    def action(self, step: time_step.TimeStep, state: Any) -> Any:
        assert state == ()
        scalar = step.observation["b"][:, 0] + 100 * step.observation["a"]
        action = {"arm": tf.stack([scalar, tf.cast(step.step_type, tf.float32)], 1), "gripper": step.discount}
        return policy_step.PolicyStep(action, (), ())

    def get_initial_state(self, batch_size: int) -> Any:
        return ()


def test_nests_keep_their_order_and_first_steps_are_marked() -> None:
    observation = {"b": tf.TensorSpec([2], tf.float32), "a": tf.TensorSpec([], tf.float32)}
    specs = EnvironmentSpecs(observation, NESTED, time_step.time_step_spec(observation))
    function = PolicyFunction(Recording(), specs, BATCH)
    row = np.arange(BATCH, dtype=np.float32)
    actions = function({"b": np.stack([row, -row], axis=1), "a": row}, FIRST)
    np.testing.assert_array_equal(actions["arm"][:, 0], 101 * row)
    expected = np.where(FIRST, time_step.StepType.FIRST, time_step.StepType.MID)
    np.testing.assert_array_equal(actions["arm"][:, 1], expected)
    np.testing.assert_array_equal(actions["gripper"], np.ones(BATCH))


@pytest.mark.parametrize("name", agent_classes())
def test_every_collect_policy_runs_without_autograph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Autograph would take seconds of each start, and it alone could make sense of an `if` on a tensor."""
    specs = specs_of(CONTINUOUS if name in NEEDS_CONTINUOUS_ACTIONS else DISCRETE)
    policy = make_agent(name, specs).collect_policy
    seen = []
    action = policy.action

    def seeing(*arguments: Any) -> Any:
        seen.append(ag_ctx.control_status_ctx().status)
        return action(*arguments)

    monkeypatch.setattr(policy, "action", seeing)
    actions = PolicyFunction(policy, specs, BATCH)(observations(), FIRST)
    assert set(seen) == {ag_ctx.Status.DISABLED}
    low, high = specs.action.minimum, specs.action.maximum
    assert np.all((actions >= low) & (actions <= high))


def test_random_actions_fill_their_bounds() -> None:
    function = RandomPolicy(specs_of(NESTED), BATCH, seed=1)
    drawn = [function(observations(), FIRST) for _ in range(400)]
    arm = np.concatenate([actions["arm"] for actions in drawn])
    gripper = np.concatenate([actions["gripper"] for actions in drawn])
    assert (arm.dtype, arm.shape) == (np.float32, (400 * BATCH, 2))
    assert (gripper.dtype, gripper.shape) == (np.int64, (400 * BATCH,))
    low, high = np.array([-2.0, 0.0]), np.array([2.0, 1.0])
    assert np.all((arm >= low) & (arm <= high))
    # The mean of 2,000 uniform numbers is off by 0.65 % of the range, in the standard deviation.
    np.testing.assert_allclose((arm.mean(axis=0) - low) / (high - low), 0.5, atol=0.03)
    assert np.all(arm.max(axis=0) - arm.min(axis=0) > 0.98 * (high - low))
    values, counts = np.unique(gripper, return_counts=True)
    np.testing.assert_array_equal(values, [0, 1, 2, 3])
    np.testing.assert_allclose(counts, 500, rtol=0.2)


def test_random_actions_follow_the_mask_where_it_allows_any() -> None:
    masked = {"free": tf.TensorSpec([4], tf.float32)}
    specs = EnvironmentSpecs(masked, DISCRETE, time_step.time_step_spec(masked))
    function = RandomPolicy(specs, 2, seed=1, mask="free")
    drawn = [function({"free": np.array([[0, 1, 0, 1], [0] * 4])}, FIRST[:2]) for _ in range(100)]
    assert [set(actions) for actions in zip(*drawn, strict=True)] == [{1, 3}, {0, 1, 2, 3}]


def test_random_actions_are_seeded_and_differ_between_environments() -> None:
    def drawn(seed: int) -> np.ndarray:
        np.random.seed(3)  # Of no consequence: the generator is its own.
        function = RandomPolicy(specs_of(CONTINUOUS), BATCH, seed)
        return np.stack([function(observations(), FIRST) for _ in range(3)])

    np.testing.assert_array_equal(drawn(1), drawn(1))
    assert not np.any(drawn(1) == drawn(2))
    assert len(np.unique(drawn(1).reshape(-1, 2), axis=0)) == 3 * BATCH
