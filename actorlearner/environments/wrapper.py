"""What every wrapper of an environment leaves to it."""

from actorlearner.environments.environment import Environment, Nest
from actorlearner.environments.rendering import Frame


class Wrapper:
    """An environment around another, without `reset` and `step`, in which wrappers differ.

    Attributes:
      observation_spec, action_spec: those of the environment.
    """

    def __init__(self, environment: Environment) -> None:
        """Wraps `environment`."""
        self.observation_spec: Nest = environment.observation_spec
        self.action_spec: Nest = environment.action_spec
        self._environment = environment

    def close(self) -> None:
        """Frees the simulator."""
        self._environment.close()

    def render(self) -> Frame:
        """Draws the present state.

        Raises:
          RenderError: the environment cannot.
        """
        return self._environment.render()

    @property
    def frame_rate(self) -> float | None:
        """Env steps in a second of the simulated world; None where the environment does not tell."""
        return self._environment.frame_rate
