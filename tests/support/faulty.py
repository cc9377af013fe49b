"""Pendulums that fail, for whole runs: `environment.suite=tests.support.faulty:make`."""

import os
import signal
from typing import Any

import gym
import numpy as np

_STEP = 20
"""The env step of an episode at which a fault may come."""

_failed = 0


class FaultyPendulum(gym.Wrapper):
    """Pendulum-v1 that raises, answers with NaN and rewards infinitely in turn, amid its episodes."""

    def __init__(self, faults: int) -> None:
        """So many faults in a process, over all its environments."""
        super().__init__(gym.make("Pendulum-v1"))
        self._faults = faults
        self._steps = 0

    def reset(self, **kwargs: Any) -> Any:
        self._steps = 0
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        global _failed
        self._steps += 1
        observation, reward, done, info = self.env.step(action)
        if self._steps != _STEP or _failed == self._faults:
            return observation, reward, done, info
        _failed += 1
        if _failed % 3 == 1:
            raise FloatingPointError("the pendulum came off")
        if _failed % 3 == 2:
            return np.full_like(observation, np.nan), reward, done, info
        return observation, np.inf, done, info


def make(faults: int) -> FaultyPendulum:
    return FaultyPendulum(faults)


class BrokenPendulum(gym.Wrapper):
    """Pendulum-v1 that breaks for good in its 20th env step: it raises, returns NaN, aborts or hangs."""

    def __init__(self, how: str) -> None:
        super().__init__(gym.make("Pendulum-v1"))
        self._how = how
        self._steps = 0

    def step(self, action: Any) -> Any:
        self._steps += 1
        observation, reward, done, info = self.env.step(action)
        if self._steps < _STEP:
            return observation, reward, done, info
        if self._how == "raise":
            raise FloatingPointError("the pendulum came off")
        if self._how == "abort":
            os.abort()
        if self._how == "hang":
            signal.pause()
        return np.full_like(observation, np.nan), reward, done, info


def make_broken(how: str) -> BrokenPendulum:
    return BrokenPendulum(how)
