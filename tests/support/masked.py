"""An environment that raises on actions that its mask forbids: suite `tests.support.masked:make`."""

from typing import Any

import gymnasium
import numpy as np

_ACTIONS = 4


class Picky(gymnasium.Env):
    """Allows one action of four in each env step, a different one each time."""

    observation_space = gymnasium.spaces.Dict(
        {"allowed": gymnasium.spaces.Box(0.0, 1.0, (_ACTIONS,), np.float32)}
    )
    action_space = gymnasium.spaces.Discrete(_ACTIONS)

    def __init__(self) -> None:
        self._steps = 0

    def reset(self, **kwargs: Any) -> Any:
        super().reset(**kwargs)
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        if action != self._steps % _ACTIONS:
            raise ValueError(f"action {action} is forbidden")
        self._steps += 1
        return self._observation(), 1.0, False, False, {}

    def _observation(self) -> dict[str, Any]:
        return {"allowed": np.eye(_ACTIONS, dtype=np.float32)[self._steps % _ACTIONS]}


def make() -> Picky:
    return Picky()
