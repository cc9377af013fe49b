"""A policy as a function from observations to actions, for all environments of an actor at once."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tree
from tf_agents.specs import array_spec, tensor_spec
from tf_agents.trajectories import time_step as ts

from actorlearner.config.own_code import load_own
from actorlearner.environments.environment import Nest
from actorlearner.environments.specs import EnvironmentSpecs


class PolicyFunction:
    """A policy as one concrete graph function: nothing is traced while acting.

    Attributes:
      info: nest of arrays [batch_size, ...], the policy's info for the last actions.
      state: nest of arrays [batch_size, ...], the policy's state before the last actions.
    """

    def __init__(self, policy: Any, specs: EnvironmentSpecs, batch_size: int) -> None:
        """Traces the policy for `batch_size` observations, without autograph.

        So the policy must have no Python `if` on a tensor. TF-Agents' policies have none, and autograph would
        take four seconds of a core.

        Args:
          policy: a TFPolicy, or a loaded SavedModel of one.
          specs: the environments' specs.
          batch_size: number of observations per call.
        """
        self._policy = policy
        self._specs = specs
        self._initial = policy.get_initial_state(batch_size)
        initial = tree.flatten(self._initial)
        signature = [
            [tf.TensorSpec([batch_size, *s.shape], s.dtype) for s in tree.flatten(specs.observation)],
            tf.TensorSpec([batch_size], tf.bool),
            [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in initial],
        ]
        function = tf.function(self._choose, input_signature=signature, autograph=False)
        self._act = function.get_concrete_function()
        self._captures = list(self._act.captured_inputs)
        self._dtypes = [output.dtype for output in self._act.outputs]
        self._actions = len(tree.flatten(specs.action))
        self._states = [leaf.numpy() for leaf in initial]
        self.info: Nest = ()
        self.state: Nest = self._initial

    def __call__(self, observations: Nest, first: npt.NDArray[np.bool_]) -> Nest:
        """Chooses an action for each environment.

        Args:
          observations: nest of arrays [batch_size, ...].
          first: bool [batch_size], True where an episode begins.

        Returns:
          Nest of arrays [batch_size, ...].
        """
        # Runs the operation behind `self._act(...)` without TensorFlow's Python code around it: six times as
        # fast in a tight loop, and twice as fast between env steps, when that code is not in the caches.
        outputs = tf.raw_ops.StatefulPartitionedCall(
            args=[*tree.flatten(observations), first, *self._states, *self._captures],
            Tout=self._dtypes,
            f=self._act,
        )
        arrays = [output.numpy() for output in outputs]
        if len(arrays) > self._actions:
            self._keep(arrays[self._actions :])
        return tree.unflatten_as(self._specs.action, arrays[: self._actions])

    def _choose(self, leaves: list[tf.Tensor], first: tf.Tensor, states: list[tf.Tensor]) -> list[tf.Tensor]:
        """The graph: returns the leaves of the actions, their info, the new states, and the states before."""
        zeros = tf.zeros(first.shape.as_list())
        before = [
            tf.where(tf.reshape(first, [-1] + [1] * (leaf.shape.rank - 1)), beginning, leaf)
            for leaf, beginning in zip(states, tree.flatten(self._initial), strict=True)
        ]
        time_step = ts.TimeStep(
            step_type=tf.where(first, ts.StepType.FIRST, ts.StepType.MID),
            reward=zeros,
            discount=tf.ones_like(zeros),
            observation=tree.unflatten_as(self._specs.observation, leaves),
        )
        step = self._policy.action(time_step, tree.unflatten_as(self._initial, before))
        self._info_spec = step.info
        return [*tree.flatten(step.action), *tree.flatten(step.info), *tree.flatten(step.state), *before]

    def _keep(self, arrays: list[npt.NDArray[Any]]) -> None:
        """Keeps the info of the last actions, the new states, and the states before."""
        states = len(self._states)
        infos = len(arrays) - 2 * states
        self.info = tree.unflatten_as(self._info_spec, arrays[:infos])
        self._states = arrays[infos : infos + states]
        self.state = tree.unflatten_as(self._initial, arrays[infos + states :])


class RandomPolicy:
    """Draws actions uniformly from the action spec; same interface as PolicyFunction."""

    def __init__(
        self,
        specs: EnvironmentSpecs,
        batch_size: int,
        seed: int,
        state_spec: Nest = (),
        mask: str | None = None,
    ) -> None:
        """Seeds its own generator.

        Args:
          specs: of the environment.
          batch_size: the number of environments.
          seed: of the generator.
          state_spec: spec of the state of the policy that this one replaces.
          mask: `agent.action_mask`.
        """
        self._mask = mask
        self.info: Nest = ()
        self.state = _zeros(state_spec, batch_size)
        self._spec: Any = tensor_spec.to_array_spec(specs.action)
        self._batch_size = batch_size
        self._random = np.random.RandomState(seed)

    def __call__(self, observations: Nest, first: npt.NDArray[np.bool_]) -> Nest:
        """Returns a nest of arrays [batch_size, ...]; of the observations, only the action mask is used."""
        if self._mask is not None:
            allowed = np.asarray(observations[self._mask], np.bool_)
            # If the mask allows no action, any action may be drawn; policies do the same.
            choices = [np.flatnonzero(row | ~row.any()) for row in allowed]
            return np.array([self._random.choice(each) for each in choices], self._spec.dtype)
        return array_spec.sample_spec_nest(self._spec, self._random, (self._batch_size,))


class ScriptedPolicy:
    """Calls the user's function for the action of each environment; same interface as PolicyFunction."""

    def __init__(self, name: str, specs: EnvironmentSpecs, batch_size: int, state_spec: Nest = ()) -> None:
        """Imports the function.

        Args:
          name: module:callable, see `collect.initial_policy`.
          specs: of the environment.
          batch_size: the number of environments.
          state_spec: spec of the state of the policy that this one replaces.

        Raises:
          ConfigurationError: it cannot be imported.
        """
        self.info: Nest = ()
        self.state = _zeros(state_spec, batch_size)
        self._spec = specs.action
        self._batch_size = batch_size
        allowed = "module:callable that takes an observation and returns an action"
        self._choose = load_own(name, "collect.initial_policy", allowed)

    def __call__(self, observations: Nest, first: npt.NDArray[np.bool_]) -> Nest:
        """Returns a nest of arrays [batch_size, ...]."""
        rows = [tree.map_structure(lambda leaf, i=i: leaf[i], observations) for i in range(self._batch_size)]
        actions = [tree.flatten_up_to(self._spec, self._choose(row)) for row in rows]
        leaves = zip(*actions, strict=True)
        specs = tree.flatten(self._spec)
        stacked = [
            np.asarray(leaf, spec.dtype.as_numpy_dtype).reshape([self._batch_size, *spec.shape])
            for leaf, spec in zip(leaves, specs, strict=True)
        ]
        return tree.unflatten_as(self._spec, stacked)


def _zeros(state_spec: Nest, batch_size: int) -> Nest:
    """Returns a policy state of zeros: a nest of arrays [batch_size, ...]."""
    return tree.map_structure(
        lambda spec: np.zeros([batch_size, *spec.shape], spec.dtype.as_numpy_dtype), state_spec
    )
