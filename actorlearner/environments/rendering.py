"""Renders environments without a display."""

import functools
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from actorlearner.errors import one_line

Frame = npt.NDArray[np.uint8]
"""[height, width, 3], RGB."""

_WIDTH, _HEIGHT = 640, 480
_MODE = "rgb_array"
_RATES = ("render_fps", "video.frames_per_second")
_TIME_STEPS = (("dt",), ("_time_step", "_action_repeat"), ("_timeStep", "_actionRepeat"))
_LOWEST_RATE, _HIGHEST_RATE = 1.0, 1e6
"""Rates outside this range are ignored: the environment has no time, or counts it in days."""


class RenderError(Exception):
    """An environment cannot be rendered; the message gives the reason."""


def render(environment: Any) -> Frame:
    """Renders the current state of a gym.Env (of any version) or a PyEnvironment.

    Raises:
      RenderError: the environment cannot be rendered.
    """
    _draw_without_display()
    _enlarge(environment)
    # gymnasium takes the mode when the environment is made, gym with each call.
    fixed = hasattr(environment, "render_mode")
    if fixed and environment.render_mode is None:
        raise RenderError(f"it was made without render_mode={_MODE!r}")
    try:
        picture = environment.render() if fixed else environment.render(mode=_MODE)
    except Exception as error:  # User code may raise anything.
        raise RenderError(f"its render raised {one_line(error)}") from error
    frame = np.asarray(picture)
    if frame.ndim != 3 or frame.shape[2] not in (3, 4) or frame.dtype != np.uint8 or not frame.size:
        raise RenderError(f"its render(mode={_MODE!r}) returned no picture (uint8[height, width, 3])")
    return np.ascontiguousarray(frame[:, :, :3])


def frame_rate(environment: Any) -> float | None:
    """Returns the env steps per simulated second; None if unknown.

    The simulator's time step has precedence over the metadata, whose rate may be chosen for viewing: in the
    metadata of PyBullet's Minitaur it is half the real rate.
    """
    layers = [layer for layer in (environment, getattr(environment, "gym", None)) if layer is not None]
    rates = [1.0 / step for layer in layers for step in _time_steps(layer)]
    rates += [rate for layer in layers for rate in _stated_rates(layer)]
    return next((rate for rate in rates if _LOWEST_RATE <= rate < _HIGHEST_RATE), None)


def _time_steps(environment: Any) -> Iterator[float]:
    """Yields the simulated seconds of an env step, from the attributes of gym and PyBullet."""
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
    """Keeps SDL, which renders gym's environments, from opening windows or sound and handling signals."""
    os.environ |= {
        "SDL_VIDEODRIVER": "dummy",
        "SDL_AUDIODRIVER": "dummy",
        "SDL_NO_SIGNAL_HANDLERS": "1",
        "PYGAME_HIDE_SUPPORT_PROMPT": "1",
    }


def _enlarge(environment: Any) -> None:
    """Enlarges the pictures of PyBullet's environments, which are 320x240 by default."""
    inner = getattr(environment, "unwrapped", environment)
    if getattr(inner, "_render_width", _WIDTH) < _WIDTH and hasattr(inner, "_render_height"):
        inner._render_width, inner._render_height = _WIDTH, _HEIGHT
