"""The PyEnvironment of numbered env steps; apart from `numbered`, because TF-Agents comes with it."""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
from tf_agents.environments import py_environment
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.environment import Nest
from actorlearner.environments.load import load_environment
from benchmarks.chaos.numbered import Pace, Steps

_REWARDS = 8


class NumberedEnvironment(py_environment.PyEnvironment):
    """Any action leads to the next number. Every other episode terminates; the rest are truncated."""

    def __init__(self, steps: Steps, pace: Pace, action_spec: Nest) -> None:
        """Does not begin an episode yet.

        Args:
          steps: numbers and records the env steps.
          pace: limits the rate of env steps.
          action_spec: the spec of the actions, which are ignored.
        """
        super().__init__()
        self._steps = steps
        self._pace = pace
        self._actions = action_spec

    def observation_spec(self) -> array_spec.ArraySpec:
        """Returns the spec of `numbered.observation`."""
        return array_spec.BoundedArraySpec([4], np.float32, 0.0, 1.0, "observation")

    def action_spec(self) -> Nest:
        """Returns the spec of the actions, which are ignored."""
        return self._actions

    def _reset(self) -> ts.TimeStep:
        self._steps.begin_episode()
        return ts.restart(self._steps.observation)

    def _step(self, action: Nest) -> ts.TimeStep:
        self._pace.wait()
        reward = self._steps.number % _REWARDS / _REWARDS
        if not self._steps.take():
            return ts.transition(self._steps.observation, reward)
        if self._steps.episode % 2:
            return ts.termination(self._steps.observation, reward)
        return ts.truncation(self._steps.observation, reward)

    def close(self) -> None:
        """Closes the log of env steps."""
        self._steps.close()


def make(directory: str, interval_s: float, acts_as: dict[str, Any]) -> NumberedEnvironment:
    """Makes a numbered environment.

    Args:
      directory: of the logs of env steps.
      interval_s: least seconds between two env steps of this process.
      acts_as: the environment section of the configuration whose action space it has.
    """
    return NumberedEnvironment(
        Steps(Path(directory)), _pace(interval_s), _action_spec(json.dumps(acts_as, sort_keys=True))
    )


@functools.cache
def _pace(interval_s: float) -> Pace:
    """Returns the pace of this process: its environments, which step in turn, share it."""
    return Pace(interval_s)


@functools.cache
def _action_spec(section: str) -> Nest:
    environment = load_environment(EnvironmentConfig(**json.loads(section)), seed=0)
    try:
        return environment.action_spec
    finally:
        environment.close()
