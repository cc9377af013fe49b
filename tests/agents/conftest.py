"""Specs and batches for the agents' tests."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import policy_step, time_step, trajectory

from actorlearner.agents.encoder import AgentSpecs
from actorlearner.agents.registry import find_builder

MID, LAST = time_step.StepType.MID, time_step.StepType.LAST


def make_specs(action: Any, observation: Any = None) -> AgentSpecs:
    observation = observation or tensor_spec.TensorSpec([3], tf.float32, "observation")
    return AgentSpecs(observation, action, time_step.time_step_spec(observation))


def continuous_specs() -> AgentSpecs:
    return make_specs(tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0], "action"))


def discrete_specs() -> AgentSpecs:
    return make_specs(tensor_spec.BoundedTensorSpec([], tf.int64, 0, 3, "action"))


@dataclasses.dataclass
class Batch:
    """Transitions as the learner gets them, and the 2-step trajectories that stock replay would give."""

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    discount: np.ndarray
    next_observation: np.ndarray

    def transition(self) -> trajectory.Transition:
        size = len(self.reward)
        mid, zeros, ones = np.full(size, MID), np.zeros(size, np.float32), np.ones(size, np.float32)
        values = trajectory.Transition(
            time_step.TimeStep(mid, zeros, ones, self.observation),
            policy_step.PolicyStep(self.action),
            time_step.TimeStep(mid, self.reward, self.discount, self.next_observation),
        )
        return tf.nest.map_structure(tf.convert_to_tensor, values)

    def two_step_trajectory(self, truncated: np.ndarray) -> trajectory.Trajectory:
        """The second of the two steps is the next episode's first where an episode ended."""

        def steps(first: Any, second: Any) -> tf.Tensor:
            return tf.stack([tf.convert_to_tensor(first), tf.cast(second, np.asarray(first).dtype)], axis=1)

        ended = truncated | (self.discount == 0)
        return trajectory.Trajectory(
            step_type=steps(np.full(len(ended), MID), np.where(ended, LAST, MID)),
            observation=steps(self.observation, self.next_observation),
            action=steps(self.action, np.zeros_like(self.action)),
            policy_info=(),
            next_step_type=steps(np.where(ended, LAST, MID), np.full(len(ended), MID)),
            reward=steps(self.reward, np.full_like(self.reward, 7.0)),
            discount=steps(self.discount, np.ones_like(self.discount)),
        )


def make_batch(specs: AgentSpecs, discount: list[float]) -> Batch:
    random = np.random.default_rng(3)
    size = len(discount)
    if specs.action.dtype.is_integer:
        action = random.integers(0, 4, size)
    else:
        action = random.uniform([-2.0, 0.0], [2.0, 1.0], (size, 2)).astype(np.float32)
    return Batch(
        observation=random.normal(size=(size, 3)).astype(np.float32),
        action=action,
        reward=random.normal(size=size).astype(np.float32),
        discount=np.array(discount, np.float32),
        next_observation=random.normal(size=(size, 3)).astype(np.float32),
    )


def make_agent(name: str, specs: AgentSpecs, **keys: Any) -> Any:
    """Makes an agent; the same keys give the same initial weights."""
    builder = find_builder(name)
    tf.keras.utils.set_random_seed(5)  # Keras initialisers draw from Python, not from TensorFlow
    agent = builder.make_agent(builder.config_class(**keys), specs, tf.Variable(0, dtype=tf.int64))
    agent.initialize()
    return agent


@pytest.fixture
def agents() -> Callable[..., Any]:
    return make_agent


@pytest.fixture
def batches() -> Callable[..., Batch]:
    return make_batch


@pytest.fixture
def specs_of() -> Callable[..., AgentSpecs]:
    return make_specs


@pytest.fixture
def continuous() -> AgentSpecs:
    return continuous_specs()


@pytest.fixture
def discrete() -> AgentSpecs:
    return discrete_specs()


@pytest.fixture
def eagerly() -> Iterator[None]:
    """Runs functions eagerly: random numbers then depend only on the seed and the order of draws."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
