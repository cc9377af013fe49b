"""Pictures of an environment, drawn without a display."""

import functools
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from actorlearner.errors import one_line

Frame = npt.NDArray[np.uint8]
"""[height, width, 3], red, green and blue."""

_WIDTH, _HEIGHT = 640, 480
_MODE = "rgb_array"
_RATES = ("render_fps", "video.frames_per_second")
_TIME_STEPS = (("dt",), ("_time_step", "_action_repeat"), ("_timeStep", "_actionRepeat"))
_LOWEST_RATE, _HIGHEST_RATE = 1.0, 1e6
"""Others are no env steps a second: of a world without time, or one that counts it in days."""


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
    """Env steps in a second of the simulated world; None where the environment does not tell.

    Its own time step comes first: the rate in the metadata is that at which its author liked to look at it,
    which is half speed for PyBullet's Minitaur.
    """
    layers = [layer for layer in (environment, getattr(environment, "gym", None)) if layer is not None]
    rates = [1.0 / step for layer in layers for step in _time_steps(layer)]
    rates += [rate for layer in layers for rate in _stated_rates(layer)]
    return next((rate for rate in rates if _LOWEST_RATE <= rate < _HIGHEST_RATE), None)


def _time_steps(environment: Any) -> Iterator[float]:
    """Seconds of an env step, by the names that gym's and PyBullet's environments have for them."""
    inner = getattr(environment, "unwrapped", environment)
    for names in _TIME_STEPS:
        factors: list[Any] = [getattr(inner, name, None) for name in names]
        if all(_is_positive(factor) for factor in factors):
            yield math.prod(factors)


def _stated_rates(environment: Any) -> Iterator[float]:
    metadata = getattr(environment, "metadata", None)
    if isinstance(metadata, dict):
        yield from (float(metadata[name]) for name in _RATES if _is_positive(metadata.get(name)))


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 < value < math.inf


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
