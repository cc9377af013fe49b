"""The interface through which actors step every environment, whatever library it comes from."""

from typing import Any, NamedTuple, Protocol

from actorlearner.environments.rendering import Frame

Nest = Any
"""A (nested) structure of numpy arrays or specs."""


class Step(NamedTuple):
    """What an environment answers to one action.

    Attributes:
      observation: nest of arrays with the shapes and dtypes of `observation_spec`.
      reward: float.
      discount: 0.0 where the episode terminated, 1.0 elsewhere: also where a time limit truncated it,
        so that the value of the last state is bootstrapped.
      last: whether the episode ended here, by termination or truncation; `reset` comes next.
    """

    observation: Nest
    reward: float
    discount: float
    last: bool


class Environment(Protocol):
    """One environment, not batched. It is reset only when told to.

    Attributes:
      observation_spec, action_spec: nests of `tf_agents.specs` array specs.
    """

    observation_spec: Nest
    action_spec: Nest

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation."""

    def step(self, action: Nest) -> Step:
        """Takes one env step; blocks for as long as the simulator does."""

    def close(self) -> None:
        """Frees the simulator."""

    def render(self) -> Frame:
        """Draws the present state; see `rendering.render`."""

    @property
    def frame_rate(self) -> float | None:
        """Env steps in a second of the simulated world; None where the environment does not tell."""
