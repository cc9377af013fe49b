"""Adapts the tasks of dm_control's suite; their time limit truncates episodes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from dm_env import specs

from actorlearner.environments.adapter import Adapter
from actorlearner.environments.array_specs import single_precision
from actorlearner.environments.environment import Nest, Step
from actorlearner.environments.rendering import Frame, RenderError
from actorlearner.errors import one_line

_HEIGHT, _WIDTH = 480, 640


def make_task(name: str, step_limit: int | None, kwargs: Mapping[str, Any]) -> "DmControlAdapter":
    """Makes a task.

    Args:
      name: DOMAIN-TASK, as in cheetah-run.
      step_limit: env steps after which an episode is truncated; None: the task's own limit.
      kwargs: keyword arguments of the task.
    """
    from dm_control import suite

    domain, _, task = name.rpartition("-")
    environment = suite.load(domain, task, task_kwargs=dict(kwargs))
    if step_limit is not None:
        # Not by a keyword: `suite.load` takes a time limit in seconds, and not for all tasks.
        environment._step_limit = step_limit
    return DmControlAdapter(environment)


class DmControlAdapter(Adapter):
    """An Environment whose observation is one vector: the task's observations, concatenated."""

    def __init__(self, environment: Any) -> None:
        """Reads the specs."""
        size = sum(int(np.prod(spec.shape)) for spec in environment.observation_spec().values())
        action = environment.action_spec()
        observation = specs.Array([size], np.float32, "observation")
        super().__init__(environment, observation, single_precision(action.replace(name="action")))
        self._dtype = action.dtype

    def seed(self, seed: int) -> bool:
        """Seeds the task."""
        self._environment.task._random = np.random.RandomState(seed)
        return True

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation."""
        return _vector(self._environment.reset().observation)

    def step(self, action: Nest) -> Step:
        """Takes one env step."""
        answer = self._environment.step(np.asarray(action, self._dtype))
        return Step(
            _vector(answer.observation), float(answer.reward or 0.0), float(answer.discount), answer.last()
        )

    def render(self) -> Frame:
        """Renders the current state; raises RenderError without a way to draw."""
        try:
            frame: Frame = self._environment.physics.render(_HEIGHT, _WIDTH, camera_id=0)
        except Exception as error:  # MuJoCo raises many types without a display or EGL.
            raise RenderError(f"its render raised {one_line(error)}") from error
        return frame

    @property
    def step_limit(self) -> int | None:
        """Env steps after which the task truncates an episode; None: never."""
        limit = self._environment._step_limit
        return int(limit) if np.isfinite(limit) else None

    @property
    def frame_rate(self) -> float | None:
        """Env steps per simulated second."""
        return 1.0 / float(self._environment.control_timestep())


def _vector(observation: Any) -> npt.NDArray[np.float32]:
    return np.concatenate([np.ravel(part) for part in observation.values()]).astype(np.float32)
