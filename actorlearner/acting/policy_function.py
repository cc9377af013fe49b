"""A policy as a function from observations to actions, for all environments of an actor at once."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tree
from tf_agents.specs import array_spec, tensor_spec
from tf_agents.trajectories import time_step as ts

from actorlearner.environments.environment import Nest
from actorlearner.environments.specs import EnvironmentSpecs


class PolicyFunction:
    """A policy as one concrete graph function: nothing is traced while acting."""

    def __init__(self, policy: Any, specs: EnvironmentSpecs, batch_size: int) -> None:
        """Traces the policy for `batch_size` observations, without autograph.

        The policy must have no state, and no Python `if` on a tensor: TF-Agents' policies need no autograph,
        and applying it costs four seconds of a core.

        Args:
          policy: a TFPolicy, or a loaded SavedModel of one.
          specs: the environments' specs.
          batch_size: number of observations per call.
        """
        self._policy = policy  # Keeps its variables alive.
        self._observation_spec = specs.observation
        self._action_spec = specs.action
        flat = tree.flatten(specs.observation)

        @tf.function(
            input_signature=[
                [tf.TensorSpec([batch_size, *spec.shape], spec.dtype) for spec in flat],
                tf.TensorSpec([batch_size], tf.bool),
            ],
            autograph=False,
        )
        def act(leaves: list[tf.Tensor], first: tf.Tensor) -> list[tf.Tensor]:
            zeros = tf.zeros([batch_size])
            time_step = ts.TimeStep(
                step_type=tf.where(first, ts.StepType.FIRST, ts.StepType.MID),
                reward=zeros,
                discount=tf.ones_like(zeros),
                observation=tree.unflatten_as(specs.observation, leaves),
            )
            action: list[tf.Tensor] = tree.flatten(policy.action(time_step, ()).action)
            return action

        self._act = act.get_concrete_function()
        self._captures = list(self._act.captured_inputs)
        self._dtypes = [output.dtype for output in self._act.outputs]

    def __call__(self, observations: Nest, first: npt.NDArray[np.bool_]) -> Nest:
        """Chooses an action for each environment.

        Args:
          observations: nest of arrays [batch_size, ...].
          first: bool [batch_size], True where an episode begins.

        Returns:
          Nest of arrays [batch_size, ...].
        """
        # Runs the operation behind `self._act(...)` directly. Without the Python code around it, a call takes
        # a sixth of the time, or half of it between env steps, when that code is not in the caches.
        actions = tf.raw_ops.StatefulPartitionedCall(
            args=[*tree.flatten(observations), first, *self._captures], Tout=self._dtypes, f=self._act
        )
        return tree.unflatten_as(self._action_spec, [action.numpy() for action in actions])


class RandomFunction:
    """Draws actions uniformly from the action spec; same interface as PolicyFunction."""

    def __init__(self, specs: EnvironmentSpecs, batch_size: int, seed: int) -> None:
        """Seeds its own generator."""
        self._spec: Any = tensor_spec.to_array_spec(specs.action)
        self._batch_size = batch_size
        self._random = np.random.RandomState(seed)

    def __call__(self, observations: Nest, first: npt.NDArray[np.bool_]) -> Nest:
        """Returns a nest of arrays [batch_size, ...], whatever the observations."""
        return array_spec.sample_spec_nest(self._spec, self._random, (self._batch_size,))
