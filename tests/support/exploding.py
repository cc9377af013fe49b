"""A pendulum whose rewards become so large that training diverges: suite `tests.support.exploding:make`."""

from typing import Any

import gym


class Exploding(gym.Wrapper):
    """Gives rewards of which no squared error is finite, after some env steps."""

    def __init__(self, harmless_steps: int) -> None:
        """The first `harmless_steps` env steps have the pendulum's own rewards."""
        super().__init__(gym.make("Pendulum-v1"))
        self._harmless_steps = harmless_steps

    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        self._harmless_steps -= 1
        observation, reward, done, facts = super().step(action)
        return observation, reward if self._harmless_steps >= 0 else 1e30, done, facts


def make(**arguments: Any) -> Exploding:
    return Exploding(**arguments)
