"""What passes from acting to replay."""

from typing import NamedTuple

from actorlearner.environments.environment import Nest


class EnvSteps(NamedTuple):
    """One env step in each environment of an actor; every array has a leading dimension [environments].

    Attributes:
      observation: what was acted on; nest as the environment's specs say.
      first: bool, whether an episode begins with that observation.
      action: nest as the environment's specs say.
      reward, discount: float32; the discount is 0 where the episode terminated, also 1 where a time limit
        truncated it.
      next_observation: what the environment answered, before any reset.
      last: bool, whether the episode ended here, by termination or truncation.
      policy_train_step: int64, the train step of the variables that chose the action; RANDOM_POLICY for
        random actions.
      valid: bool; where it is False the environment failed and its episode is given up: nothing of the env
        step may be used, and what came before it in the episode ends like one that a time limit truncated.
        There, `next_observation` is the observation itself.
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
