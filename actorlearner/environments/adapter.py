"""The base class of the adapters for environments of gym, TF-Agents and dm_control."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

from actorlearner.environments.environment import Nest, Step
from actorlearner.environments.rendering import Frame, frame_rate, render


class Adapter(ABC):
    """An environment of another library as an `Environment`.

    Attributes:
      observation_spec, action_spec: nests of array specs.
    """

    def __init__(
        self, environment: Any, observation_spec: Nest, action_spec: Nest, info_keys: Collection[str] = ()
    ) -> None:
        """Wraps an environment of another library.

        Args:
          environment: a gym.Env (of any version), a gymnasium.Env, a PyEnvironment, or a dm_control task.
          observation_spec: nest of array specs.
          action_spec: nest of array specs.
          info_keys: the keys of the numbers in the environment's info that each Step reports.
        """
        self._info_keys = info_keys
        self.observation_spec = observation_spec
        self.action_spec = action_spec
        self._environment = environment

    @abstractmethod
    def reset(self) -> Nest:
        """Starts an episode; returns its first observation."""

    @abstractmethod
    def step(self, action: Nest) -> Step:
        """Takes an env step."""

    @abstractmethod
    def seed(self, seed: int) -> bool:
        """Seeds the environment; returns whether it takes a seed."""

    def close(self) -> None:
        """Frees the simulator."""
        self._environment.close()

    def render(self) -> Frame:
        """Renders the current state; raises RenderError if the environment cannot."""
        return render(self._environment)

    @property
    def frame_rate(self) -> float | None:
        """Env steps per simulated second; None if unknown."""
        return frame_rate(self._environment)
