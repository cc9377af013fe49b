"""What the adapters of all libraries' environments share."""

from typing import Any

from actorlearner.environments.environment import Nest
from actorlearner.environments.rendering import Frame, frame_rate, render


class Adapter:
    """A library's environment, without `reset` and `step`, in which libraries differ.

    Attributes:
      observation_spec, action_spec: nests of array specs.
    """

    def __init__(self, environment: Any, observation_spec: Nest, action_spec: Nest) -> None:
        """Adapts `environment`: a gym.Env, old or new, or a PyEnvironment."""
        self.observation_spec = observation_spec
        self.action_spec = action_spec
        self._environment = environment

    def close(self) -> None:
        """Frees the simulator."""
        self._environment.close()

    def render(self) -> Frame:
        """Draws the present state.

        Raises:
          RenderError: the environment cannot.
        """
        return render(self._environment)

    @property
    def frame_rate(self) -> float | None:
        """Env steps in a second of the simulated world; None where the environment does not tell."""
        return frame_rate(self._environment)
