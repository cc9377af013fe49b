"""An environment that waits for something outside, as for a robot, and computes nothing itself."""

import time
from typing import Any

import gym
import numpy as np
import numpy.typing as npt

SUITE = f"{__name__}:make"

_OBSERVATIONS, _ACTIONS = 26, 6
"""As many as HalfCheetahBulletEnv-v0 has."""


class WaitingEnvironment(gym.Env):
    """Returns random observations, in episodes without an end."""

    def __init__(self, wait_s: float) -> None:
        """Each env step takes `wait_s`."""
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (_OBSERVATIONS,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (_ACTIONS,), np.float32)
        self._wait_s = wait_s
        self._random = np.random.default_rng(0)

    def reset(self, **options: Any) -> npt.NDArray[np.float32]:
        """Returns the first observation of an episode."""
        return self._observation()

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], float, bool, dict[str, Any]]:
        """Waits; returns an observation without a reward or an end."""
        time.sleep(self._wait_s)
        return self._observation(), 0.0, False, {}

    def _observation(self) -> npt.NDArray[np.float32]:
        return self._random.standard_normal(_OBSERVATIONS, np.float32)


def make(wait_s: float) -> WaitingEnvironment:
    """Makes one for `environment.suite`."""
    return WaitingEnvironment(wait_s)
