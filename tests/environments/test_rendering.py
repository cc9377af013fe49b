"""The frame rate of an environment's video, which plays in simulated time."""

import math
import types
from typing import Any

import gym
import pytest

from actorlearner.environments.quiet import quiet_output
from actorlearner.environments.rendering import frame_rate


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("Pendulum-v1", 20.0),  # Its metadata says 30.
        ("CartPole-v1", 50.0),
        ("MountainCarContinuous-v0", 30.0),  # Only its metadata has it.
        ("HalfCheetahBulletEnv-v0", 60.0),
        ("MinitaurBulletEnv-v0", 100.0),  # Its metadata says 50.
    ],
)
def test_frame_rate_of_real_environments(name: str, rate: float) -> None:
    with quiet_output():
        import pybullet_envs  # noqa: F401

        assert frame_rate(gym.make(name)) == pytest.approx(rate)


def environment(metadata: Any = None, **attributes: Any) -> Any:
    return types.SimpleNamespace(unwrapped=types.SimpleNamespace(**attributes), metadata=metadata)


def test_frame_rate_of_a_gym_environment_inside_a_py_environment() -> None:
    assert frame_rate(types.SimpleNamespace(gym=environment(dt=0.25))) == 4.0


@pytest.mark.parametrize("nonsense", [0, -0.1, math.nan, math.inf, "fast", None, 1e-9, 3600])
def test_invalid_time_steps_are_ignored(nonsense: Any) -> None:
    assert frame_rate(environment(dt=nonsense, _time_step=0.1, _action_repeat=5)) == 2.0
    assert frame_rate(environment({"render_fps": 25}, _time_step=0.1, _action_repeat=nonsense)) == 25.0
    assert frame_rate(environment(dt=nonsense)) is None


@pytest.mark.parametrize("nonsense", [0, -1, math.nan, math.inf, "fast", None, 1e-9, 1e9])
def test_invalid_metadata_is_ignored(nonsense: Any) -> None:
    assert frame_rate(environment({"render_fps": nonsense, "video.frames_per_second": 30})) == 30.0
    assert frame_rate(environment({"render_fps": nonsense})) is None
