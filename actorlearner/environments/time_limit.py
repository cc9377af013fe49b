"""Truncates long episodes."""

from actorlearner.environments.environment import Environment, Nest, Step
from actorlearner.environments.wrapper import Wrapper


class TimeLimit(Wrapper):
    """An environment whose episodes end after a number of env steps at the latest.

    The limit truncates: the last discount stays what the environment said, so it is 1, unless the
    episode terminated at that very step.

    Attributes:
      observation_spec, action_spec: those of the environment.
    """

    def __init__(self, environment: Environment, max_episode_steps: int) -> None:
        """Wraps `environment`; `max_episode_steps` is at least 1."""
        super().__init__(environment)
        self._max_episode_steps = max_episode_steps
        self._episode_steps = 0

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation."""
        self._episode_steps = 0
        return self._environment.reset()

    def step(self, action: Nest) -> Step:
        """Takes one env step; the last at the limit."""
        step = self._environment.step(action)
        self._episode_steps += 1
        if self._episode_steps >= self._max_episode_steps:
            return step._replace(last=True)
        return step
