"""CartPole without velocities, which is partially observable: the agent needs memory to infer them.

Start it from the root of the repository:
.venv/bin/actorlearner local --config examples/hidden_velocities.yaml
"""

from typing import Any

import gym
import numpy as np


class HiddenVelocities(gym.ObservationWrapper):
    """Keeps the position of the cart and the angle of the pole."""

    def __init__(self, environment: Any) -> None:
        """Removes both velocities from the observation space."""
        super().__init__(environment)
        space = environment.observation_space
        self.observation_space = gym.spaces.Box(space.low[[0, 2]], space.high[[0, 2]], dtype=np.float32)

    def observation(self, observation: Any) -> Any:
        """Returns an observation without the velocities."""
        return observation[[0, 2]]


def make() -> Any:
    """Makes the environment."""
    return HiddenVelocities(gym.make("CartPole-v1"))
