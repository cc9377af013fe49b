"""Pictures of an environment, drawn without a display."""

import functools
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from actorlearner.errors import one_line

Frame = npt.NDArray[np.uint8]
"""[height, width, 3], red, green and blue."""

_WIDTH, _HEIGHT = 640, 480
_MODE = "rgb_array"
_RATES = ("render_fps", "video.frames_per_second")


class RenderError(Exception):
    """An environment draws no pictures; the message says why."""


def render(environment: Any) -> Frame:
    """Draws the present state.

    Args:
      environment: a gym.Env, old or new, or a PyEnvironment.

    Raises:
      RenderError: it cannot.
    """
    _draw_without_display()
    _enlarge(environment)
    try:
        # Later versions of gym fix the mode when the environment is made.
        fixed = getattr(environment, "render_mode", None) is not None
        picture = environment.render() if fixed else environment.render(mode=_MODE)
    except Exception as error:  # The environment is somebody else's code.
        raise RenderError(f"its render raised {one_line(error)}") from error
    frame = np.asarray(picture)
    if frame.ndim != 3 or frame.shape[2] not in (3, 4) or frame.dtype != np.uint8 or not frame.size:
        raise RenderError(f"its render(mode={_MODE!r}) returned no picture (uint8[height, width, 3])")
    return np.ascontiguousarray(frame[:, :, :3])


def frame_rate(environment: Any) -> float | None:
    """Env steps in a second of the simulated world; None where the environment does not tell."""
    for layer in (environment, getattr(environment, "gym", None)):
        metadata = getattr(layer, "metadata", None)
        if not isinstance(metadata, dict):
            continue
        for name in _RATES:
            rate = metadata.get(name)
            if isinstance(rate, (int, float)) and 0 < rate < 1e6:
                return float(rate)
    return None


@functools.cache
def _draw_without_display() -> None:
    """Keeps SDL, with which gym's own environments draw, from windows, sound and signal handlers."""
    os.environ |= {
        "SDL_VIDEODRIVER": "dummy",
        "SDL_AUDIODRIVER": "dummy",
        "SDL_NO_SIGNAL_HANDLERS": "1",
        "PYGAME_HIDE_SUPPORT_PROMPT": "1",
    }


def _enlarge(environment: Any) -> None:
    """PyBullet's environments draw 320x240 unless these attributes say otherwise."""
    inner = getattr(environment, "unwrapped", environment)
    if getattr(inner, "_render_width", _WIDTH) < _WIDTH and hasattr(inner, "_render_height"):
        inner._render_width, inner._render_height = _WIDTH, _HEIGHT
