"""A task from pixels: a paddle catches a ball that falls from a random place.

Start it from the root of the repository:
.venv/bin/actorlearner local --config examples/catch.yaml
"""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

_SIZE = 42
_CELL = 2
_CELLS = _SIZE // _CELL
_PADDLE = 3


class Catch(gymnasium.Env):
    """Observation: an image of 42x42 grey pixels. Actions: left, stay, right. Reward: 1 or -1 at the end.

    The ball falls one cell in each env step, along a slope of its own, and bounces off the walls.
    """

    observation_space = gymnasium.spaces.Box(0, 255, (_SIZE, _SIZE, 1), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
        """Drops a ball from the first row."""
        super().reset(seed=seed)
        self._row, self._column = 0, int(self.np_random.integers(_CELLS))
        self._slope = int(self.np_random.integers(-1, 2))
        self._paddle = _CELLS // 2
        return self._image(), {}

    def step(self, action: int) -> tuple[npt.NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Moves the paddle and the ball by one cell."""
        self._paddle = int(np.clip(self._paddle + action - 1, _PADDLE // 2, _CELLS - 1 - _PADDLE // 2))
        self._row += 1
        if not 0 <= self._column + self._slope < _CELLS:
            self._slope = -self._slope
        self._column += self._slope
        landed = self._row == _CELLS - 1
        caught = abs(self._column - self._paddle) <= _PADDLE // 2
        reward = (1.0 if caught else -1.0) if landed else 0.0
        return self._image(), reward, landed, False, {}

    def _image(self) -> npt.NDArray[np.uint8]:
        cells = np.zeros((_CELLS, _CELLS), np.uint8)
        cells[self._row, self._column] = 255
        cells[-1, self._paddle - _PADDLE // 2 : self._paddle + _PADDLE // 2 + 1] = 160
        return np.kron(cells, np.ones((_CELL, _CELL), np.uint8))[..., None]


def make() -> Catch:
    """Returns the environment."""
    return Catch()
