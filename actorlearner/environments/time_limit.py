"""A wrapper that truncates long episodes."""

from actorlearner.environments.environment import Environment, Nest, Step, Wrapper


class TimeLimit(Wrapper):
    """Truncates episodes after `max_episode_steps`, at least 1, env steps.

    The last discount stays the environment's: 1, unless the episode terminated at that very env step.
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
