"""A gymnasium environment with observations of several kinds."""

from typing import Any

import gymnasium
import numpy as np

_PIXELS = 12


class Camera(gymnasium.Env):
    """A point on a track, seen by a camera; the side on which it shall be is a number."""

    observation_space = gymnasium.spaces.Dict(
        {
            "picture": gymnasium.spaces.Box(0, 255, (_PIXELS, _PIXELS, 1), np.uint8),
            "velocity": gymnasium.spaces.Box(-5.0, 5.0, (1,), np.float64),
            "side": gymnasium.spaces.Discrete(3, start=1),
        }
    )
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._position, self._velocity = self.np_random.uniform(-1.5, 1.5), 0.0
        self._side = int(self.np_random.integers(1, 4))
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        self._velocity = float(np.clip(0.7 * self._velocity + 0.5 * action[0], -5, 5))
        self._position = float(np.clip(self._position + 0.3 * self._velocity, -2, 2))
        reward = -abs(self._position - (self._side - 2))
        return self._observation(), reward, False, False, {"distance": -reward}

    def _observation(self) -> dict[str, Any]:
        picture = np.zeros((_PIXELS, _PIXELS, 1), np.uint8)
        picture[_PIXELS // 2, int((self._position + 2) / 4 * (_PIXELS - 1))] = 255
        return {"picture": picture, "velocity": np.array([self._velocity]), "side": self._side}
