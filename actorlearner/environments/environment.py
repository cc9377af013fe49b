"""The interface of all environments, whichever library they come from, and the env steps of an actor."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from actorlearner.environments.rendering import Frame

Nest = Any
"""A (nested) structure of numpy arrays or specs."""


class Step(NamedTuple):
    """An environment's answer to an action.

    Attributes:
      observation: nest of arrays with the shapes and dtypes of `observation_spec`.
      reward: float.
      discount: 0.0 after a termination and 1.0 otherwise, including after a truncation by a time limit,
        so that the value of the last state is bootstrapped.
      last: whether the episode ended here, by termination or truncation; `reset` must follow.
      rejected: whether the environment rejected the action; nothing is learned from this env step.
      info: the numbers that `environment.info_metrics` names, by their keys in the environment's info.
    """

    observation: Nest
    reward: float
    discount: float
    last: bool
    rejected: bool = False
    info: Mapping[str, float] = {}


class Environment(Protocol):
    """One environment, not batched. It never resets itself.

    Attributes:
      observation_spec, action_spec: nests of `dm_env.specs.Array`.
    """

    observation_spec: Nest
    action_spec: Nest

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation."""

    def step(self, action: Nest) -> Step:
        """Takes one env step; blocks while the simulator computes it."""

    def close(self) -> None:
        """Frees the simulator."""

    def render(self) -> Frame:
        """Renders the current state; raises RenderError if the environment cannot."""

    @property
    def frame_rate(self) -> float | None:
        """Env steps per simulated second; None if unknown."""


class Wrapper:
    """Base class of wrappers: passes everything to the environment but `reset` and `step`."""

    def __init__(self, environment: Environment) -> None:
        self.observation_spec: Nest = environment.observation_spec
        self.action_spec: Nest = environment.action_spec
        self._environment = environment

    def close(self) -> None:
        """Frees the simulator."""
        self._environment.close()

    def render(self) -> Frame:
        """Renders the current state; raises RenderError if the environment cannot."""
        return self._environment.render()

    @property
    def frame_rate(self) -> float | None:
        """Env steps per simulated second; None if unknown."""
        return self._environment.frame_rate


class EnvSteps(NamedTuple):
    """One env step in each environment of an actor; every array has a leading dimension [environments].

    Attributes:
      observation: nest; the observation acted on.
      first: bool; whether `observation` is the first of its episode.
      action: nest.
      reward: float32.
      discount: float32; 0 after a termination and 1 otherwise, including after a truncation by a time limit.
      next_observation: nest; the environment's answer, before any reset.
      last: bool; whether the episode ended here, by termination or truncation.
      policy_train_step: int64; train step of the variables that chose the action, RANDOM_TRAIN_STEP for
        random actions.
      valid: bool; False if the environment failed (then `last` is True) or rejected the action. Such an env
        step must not be trained on: replay truncates the episode after the env step before it. Its
        `next_observation` equals `observation`.
      cut: bool; whether the actor itself ended the episode here, as if truncated.
      policy_generation: int64; the generation of the learner that published the variables; only in sequences.
      policy_info: nest; the policy's info for the action; only in sequences.
      policy_state: nest; the state of the policy before it chose the action; only in sequences.
      info: `Step.info` of each environment; may be empty.
    """

    observation: Nest
    first: Nest
    action: Nest
    reward: Nest
    discount: Nest
    next_observation: Nest
    last: Nest
    policy_train_step: Nest
    valid: Nest
    cut: Nest = False
    policy_generation: Nest = ()
    policy_info: Nest = ()
    policy_state: Nest = ()
    info: Sequence[Mapping[str, float]] = ()
