"""An environment of your own: a cart is pushed to the middle of a track.

Start it from the root of the repository:
.venv/bin/actorlearner local --config examples/point_mass.yaml
"""

from typing import Any

import gym
import numpy as np
import numpy.typing as npt

_STEP_S = 0.1


class PointMass(gym.Env):
    """State: position and velocity. Action: force in [-1, 1]. Reward: minus the squared position."""

    observation_space = gym.spaces.Box(-10.0, 10.0, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, mass: float = 1.0) -> None:
        self._mass = mass
        self._random = np.random.default_rng()

    def seed(self, seed: int | None = None) -> None:
        """Makes the episodes that follow repeatable."""
        self._random = np.random.default_rng(seed)

    def reset(self) -> npt.NDArray[np.float32]:
        """Places the cart at rest, at random."""
        self._position, self._velocity = self._random.uniform(-2.0, 2.0), 0.0
        return self._observation()

    def step(self, action: npt.NDArray[np.float32]) -> tuple[np.ndarray, float, bool, dict[str, Any]]:
        """Pushes the cart for one time step; the episode ends only at its time limit."""
        self._velocity += _STEP_S * float(action[0]) / self._mass
        self._position = float(np.clip(self._position + _STEP_S * self._velocity, -10.0, 10.0))
        return self._observation(), -(self._position**2), False, {}

    def _observation(self) -> npt.NDArray[np.float32]:
        return np.clip([self._position, self._velocity], -10.0, 10.0).astype(np.float32)


def make(mass: float = 1.0) -> PointMass:
    """Returns the environment; `environment.kwargs` are its arguments."""
    return PointMass(mass)
