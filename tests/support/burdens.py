"""An environment that may be slow or have large observations; its suite is `tests.support.burdens:make`."""

import time
from typing import Any

import gym
import numpy as np


class Burden(gym.Env):
    """Always answers with the same numbers, which cannot be compressed, in episodes without an end."""

    def __init__(self, wait_s: float = 0.0, numbers: int = 3) -> None:
        """Each env step takes `wait_s`; an observation is so many numbers."""
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (numbers,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._wait_s = wait_s
        self._observation = np.random.default_rng(0).standard_normal(numbers, np.float32)

    def reset(self, **options: Any) -> np.ndarray:
        return self._observation

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, dict[str, Any]]:
        if self._wait_s:
            time.sleep(self._wait_s)
        return self._observation, 0.0, False, {}


def make(**burdens: Any) -> Burden:
    return Burden(**burdens)
