"""A building is heated: a slow TF-Agents PyEnvironment that uses TensorFlow and rejects some actions.

A reward of -inf says that the simulator rejected an action. The observations are float64 and unscaled, so
the agent normalises them; a thermostat chooses the first actions; the energy is a metric. Start it from the
root of the repository:
.venv/bin/actorlearner local --config examples/building.yaml
"""

import time
from typing import Any

import numpy as np
from tf_agents.environments import py_environment
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts

_STEPS = 48
_COMFORT_K = 294.0


class Building(py_environment.PyEnvironment):
    """Two rooms and the weather, half an hour an env step, a day an episode."""

    def __init__(self, step_s: float = 0.25) -> None:
        """Takes `step_s` seconds for each env step, as real simulators do."""
        import tensorflow as tf

        super().__init__()
        self._step_s = step_s
        self._random = np.random.RandomState(0)
        self._coupling = tf.constant([[-0.10, 0.04], [0.04, -0.08]], tf.float64)
        self._info: dict[str, float] = {}

    def seed(self, seed: int) -> None:
        """Seeds the weather."""
        self._random = np.random.RandomState(seed)

    def observation_spec(self) -> Any:
        """Returns both temperatures, the outside's (all in kelvins), and the hour."""
        return array_spec.ArraySpec((4,), np.float64, "observation")

    def action_spec(self) -> Any:
        """Returns the heating of each room, from -1 (off) to 1."""
        return array_spec.BoundedArraySpec((2,), np.float32, -1.0, 1.0, "action")

    def get_info(self) -> Any:
        """Returns the energy of the last env step, in kilowatt hours."""
        return self._info

    def _reset(self) -> Any:
        self._step_number = 0
        self._rooms = self._random.uniform(285.0, 296.0, 2)
        self._info = {"energy": 0.0}
        return ts.restart(self._observation())

    def _step(self, action: Any) -> Any:
        if self._current_time_step.is_last():
            return self.reset()
        time.sleep(self._step_s)
        self._step_number += 1
        if np.min(action) < -0.98:  # The boiler cannot be throttled so far: nothing happens.
            self._info = {"energy": 0.0}
            return self._answer(-np.inf)
        import tensorflow as tf

        power = (np.asarray(action, np.float64) + 1) / 2
        inside = tf.constant(self._rooms)
        flow = tf.linalg.matvec(self._coupling, inside).numpy() + np.array([0.06, 0.04]) * self._outside()
        self._rooms = self._rooms + flow + 2.0 * power
        self._info = {"energy": float(5.0 * power.sum())}
        discomfort = float(np.abs(self._rooms - _COMFORT_K).mean())
        return self._answer(5.0 - discomfort - 0.2 * self._info["energy"])

    def _answer(self, reward: float) -> Any:
        observation, reward = self._observation(), np.float32(reward)
        if self._step_number == _STEPS:
            return ts.truncation(observation, reward)
        return ts.transition(observation, reward)

    def _outside(self) -> float:
        return float(280.0 + 5.0 * np.sin(2 * np.pi * self._step_number / _STEPS))

    def _observation(self) -> Any:
        return np.array([*self._rooms, self._outside(), self._step_number / 2], np.float64)


def thermostat(observation: Any) -> Any:
    """Heats the rooms that are too cold."""
    return np.where(observation[:2] < _COMFORT_K, 0.5, -0.8).astype(np.float32)
