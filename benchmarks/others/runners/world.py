"""The environment of all runners, and their records: a JSON object a line on standard output.

    python -m benchmarks.others.runners.world ENVIRONMENT SEED ENV_STEPS RESETS

prints what an environment answers to random actions, for the check that all libraries have the same one.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from benchmarks.others.job import Job

Array = npt.NDArray[np.float32]
Environment = gymnasium.Env[Array, Array]

_INTERVAL_S = 1.0
"""Seconds between two records of progress."""

_SEED_OF_EVALUATIONS = 1_000
"""Is added to the seed, so that evaluations do not start from the states of training."""


class PybulletEnvironment(gymnasium.Env[Array, Array]):
    """An environment of pybullet_envs, which has the interface of gym 0.23, for gymnasium."""

    def __init__(self, name: str) -> None:
        """Makes it by its name, with its time limit."""
        import gym
        import pybullet_envs  # noqa: F401 registers them

        self._environment = gym.make(name)
        self.observation_space = _box(self._environment.observation_space)
        self.action_space = _box(self._environment.action_space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Starts an episode."""
        if seed is not None:
            self._environment.seed(seed)
        return self._environment.reset(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Takes an env step; the time limit truncates."""
        observation, reward, done, info = self._environment.step(action)
        truncated = done and info.get("TimeLimit.truncated", False)
        return observation, float(reward), bool(done and not truncated), bool(truncated), {}


class WaitingEnvironment(gymnasium.Wrapper[Array, Array, Array, Array]):
    """Takes longer for each env step, without computing: a slow simulator, or a robot."""

    def __init__(self, environment: Environment, wait_s: float) -> None:
        """Each env step takes `wait_s` longer."""
        super().__init__(environment)
        self._wait_s = wait_s

    def step(self, action: Array) -> tuple[Array, Any, bool, bool, dict[str, Any]]:
        """Waits, then takes an env step."""
        time.sleep(self._wait_s)
        return super().step(action)


def make(name: str, wait_s: float = 0.0) -> Environment:
    """Makes an environment of gymnasium or pybullet_envs."""
    environment = PybulletEnvironment(name) if "Bullet" in name else gymnasium.make(name)
    return WaitingEnvironment(environment, wait_s) if wait_s else environment


def _box(space: Any) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(space.low, space.high, space.shape, space.dtype.type)


class Reporter:
    """Prints the progress of training, and evaluates the greedy policy."""

    def __init__(self, job: Job, act: Callable[[Array], Array]) -> None:
        """Prints nothing yet.

        Args:
          job: the training.
          act: returns the greedy action for an observation.
        """
        self._act = act
        self._job = job
        self._due = job.evaluate_interval
        self._environment: Environment | None = None
        self._evaluating_s = 0.0
        self._printed = 0.0

    def step(self, env_steps: int, train_steps: int) -> None:
        """Prints at most once a second; evaluates when an evaluation is due."""
        if self._due is not None and env_steps >= self._due:
            self.print(env_steps, train_steps)
            self._due += self._job.evaluate_interval or 0
            self._evaluate(env_steps)
            self.print(env_steps, train_steps)
        elif time.monotonic() - self._printed >= _INTERVAL_S:
            self.print(env_steps, train_steps)

    def print(self, env_steps: int, train_steps: int) -> None:
        """Prints the steps, and the seconds of all evaluations so far, which are not seconds of training."""
        self._printed = time.monotonic()
        emit("progress", env_steps=env_steps, train_steps=train_steps, evaluating_s=self._evaluating_s)

    def _evaluate(self, env_steps: int) -> None:
        began = time.monotonic()
        if self._environment is None:
            self._environment = make(self._job.environment)
            self._environment.reset(seed=_SEED_OF_EVALUATIONS + self._job.seed)
        returns = [_episode(self._environment, self._act) for _ in range(self._job.episodes)]
        self._evaluating_s += time.monotonic() - began
        emit("evaluation", env_steps=env_steps, returns=returns)


def emit(kind: str, **values: Any) -> None:
    """Prints a record with the time."""
    print(json.dumps({"kind": kind, "time": time.time(), **values}), flush=True)


def _episode(environment: Environment, act: Callable[[Array], Array]) -> float:
    observation, _ = environment.reset()
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = environment.step(act(observation))
        total += float(reward)
        ended = terminated or truncated
    return total


def random_actions(low: Array, high: Array, seed: int, count: int) -> Iterator[Array]:
    """Yields the actions of the check, in the limits."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        yield generator.uniform(low, high).astype(np.float32)


def trace(environment: Environment, seed: int, count: int, resets: int) -> dict[str, Any]:
    """Takes env steps with random actions.

    Args:
      environment: any.
      seed: of environment and actions.
      count: of env steps.
      resets: how often it is reset before the first of them, at least once.

    Returns:
      All that it answered, and the limits of its spaces.
    """
    observation, _ = environment.reset(seed=seed)
    for _ in range(resets - 1):
        observation, _ = environment.reset()
    spaces: list[Any] = [environment.observation_space, environment.action_space]
    steps = []
    for action in random_actions(spaces[1].low, spaces[1].high, seed, count):
        before = observation.astype(np.float32).tolist()
        observation, reward, terminated, truncated, _ = environment.step(action)
        after = observation.astype(np.float32).tolist()
        steps.append([before, float(reward), bool(terminated), bool(truncated), after])
        if terminated or truncated:
            observation, _ = environment.reset()
    limits = [[space.low.tolist(), space.high.tolist()] for space in spaces]
    return {"limits": limits, "steps": steps}


if __name__ == "__main__":
    emit("trace", **trace(make(sys.argv[1]), *map(int, sys.argv[2:])))
