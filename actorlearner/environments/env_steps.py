"""The batch of env steps that an actor writes into replay."""

from typing import NamedTuple

from actorlearner.environments.environment import Nest


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
      policy_train_step: int64; train step of the variables that chose the action, RANDOM_POLICY for random
        actions.
      valid: bool; False if the environment failed. Such an env step must not be used, and the episode ends
        with the env step before it, as if truncated. `next_observation` is then `observation` itself.
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
