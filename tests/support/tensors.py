"""An environment that uses TensorFlow as soon as its module is imported."""

import numpy as np
import tensorflow as tf
from tf_agents.environments import py_environment
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step

_SPEED = tf.constant(0.5)  # Starts TensorFlow.


class Cart(py_environment.PyEnvironment):
    """Moves by a tensor's value; it has no seed and cannot be drawn."""

    def __init__(self) -> None:
        super().__init__()
        self._at = tf.Variable(0.0)
        self._left = 0

    def observation_spec(self) -> array_spec.ArraySpec:
        return array_spec.ArraySpec((1,), np.float32)

    def action_spec(self) -> array_spec.BoundedArraySpec:
        return array_spec.BoundedArraySpec((1,), np.float32, -1.0, 1.0)

    def _reset(self) -> time_step.TimeStep:
        self._at.assign(0.0)
        self._left = 10
        return time_step.restart(self._at.numpy()[None])

    def _step(self, action: np.ndarray) -> time_step.TimeStep:
        self._left -= 1
        at = self._at.assign_add(_SPEED * float(action[0])).numpy()
        if self._left == 0:
            return time_step.truncation(at[None], reward=-0.001 * abs(at))
        return time_step.transition(at[None], reward=-0.001 * abs(at))


def make() -> Cart:
    return Cart()
