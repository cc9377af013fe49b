"""CartPole that shows positions only: an agent has to remember where things were to know how fast they are.

Start it from the root of the repository:
.venv/bin/actorlearner local --config examples/hidden_velocities.yaml
"""

from typing import Any

import gym
import numpy as np


class HiddenVelocities(gym.ObservationWrapper):
    """Keeps the position of the cart and the angle of the pole."""

    def __init__(self, environment: Any) -> None:
        """Halves the observation space."""
        super().__init__(environment)
        space = environment.observation_space
        self.observation_space = gym.spaces.Box(space.low[[0, 2]], space.high[[0, 2]], dtype=np.float32)

    def observation(self, observation: Any) -> Any:
        """Returns what is left of an observation."""
        return observation[[0, 2]]


def make() -> Any:
    """Makes the environment."""
    return HiddenVelocities(gym.make("CartPole-v1"))
