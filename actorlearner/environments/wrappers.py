"""Wrappers that the configuration may put around an environment."""

import collections
import math
from typing import Any

import numpy as np
from dm_env import specs

from actorlearner.config.problems import problem
from actorlearner.environments.environment import Environment, Nest, Step, Wrapper
from actorlearner.errors import ConfigurationError


class TimeLimit(Wrapper):
    """Truncates episodes after `max_episode_steps` env steps, which must be at least 1.

    The last discount is unchanged: 1, unless the episode terminated at that env step.
    """

    def __init__(self, environment: Environment, max_episode_steps: int) -> None:
        super().__init__(environment)
        self._max_episode_steps = max_episode_steps
        self._episode_steps = 0

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation."""
        self._episode_steps = 0
        return self._environment.reset()

    def step(self, action: Nest) -> Step:
        """Takes one env step, the last of its episode at the limit."""
        step = self._environment.step(action)
        self._episode_steps += 1
        if self._episode_steps >= self._max_episode_steps:
            return step._replace(last=True)
        return step


class ActionRepeat(Wrapper):
    """Repeats each action and sums the rewards; one env step is up to `repeats` steps of the simulator.

    The info of an env step is the simulator's info of the last repetition.
    """

    def __init__(self, environment: Environment, repeats: int) -> None:
        super().__init__(environment)
        self._repeats = repeats

    @property
    def frame_rate(self) -> float | None:
        """Env steps per simulated second; None if unknown."""
        rate = super().frame_rate
        return None if rate is None else rate / self._repeats

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation."""
        return self._environment.reset()

    def step(self, action: Nest) -> Step:
        """Repeats the action, up to the end of the episode or an env step that rejects it."""
        reward, discount = 0.0, 1.0
        for _ in range(self._repeats):
            step = self._environment.step(action)
            reward += discount * step.reward
            discount *= step.discount
            if step.last or step.reward == -math.inf or discount == 0.0:
                break
        return step._replace(reward=reward, discount=discount)


class FrameStack(Wrapper):
    """Joins the last observations, oldest first: images along their channels, vectors one after another.

    At the beginning of an episode, the first observation is repeated for missing ones.
    """

    def __init__(self, environment: Environment, frames: int) -> None:
        """Widens the observation spec.

        Raises:
          ConfigurationError: the observation is neither an image nor a vector.
        """
        super().__init__(environment)
        spec = environment.observation_spec
        if not isinstance(spec, specs.Array) or len(spec.shape) not in (1, 3):
            allowed = "observations of one image or vector"
            line = problem("environment.frame_stack", f"{frames} cannot work", allowed)
            raise ConfigurationError([line])
        shape = (*spec.shape[:-1], frames * spec.shape[-1])
        if isinstance(spec, specs.BoundedArray):
            low, high = (
                self._joined([np.broadcast_to(bound, spec.shape)] * frames)
                for bound in (spec.minimum, spec.maximum)
            )
            self.observation_spec = specs.BoundedArray(shape, spec.dtype, low, high, spec.name)
        else:
            self.observation_spec = specs.Array(shape, spec.dtype, spec.name)
        self._frames: collections.deque[Any] = collections.deque(maxlen=frames)

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation, repeated."""
        first = self._environment.reset()
        self._frames.extend([first] * (self._frames.maxlen or 1))
        return self._joined(self._frames)

    def step(self, action: Nest) -> Step:
        """Takes one env step."""
        step = self._environment.step(action)
        self._frames.append(step.observation)
        return step._replace(observation=self._joined(self._frames))

    @staticmethod
    def _joined(frames: Any) -> Any:
        return np.concatenate(list(frames), axis=-1)
