"""One training, the same for every library. Runners read it too, so it imports only the standard library."""

import dataclasses
import json

PPO_ENV_STEPS = 2_048
"""Env steps between two trainings of PPO, over all environments."""

PPO_EPOCHS = 10


@dataclasses.dataclass(frozen=True)
class Job:
    """The settings of one training.

    Attributes:
      algorithm: sac or ppo.
      environment: a name of gymnasium, or of pybullet_envs.
      environments: that act at once.
      wait_s: that each env step waits in addition.
      env_steps: after which training ends.
      random_steps: env steps with random actions before training, and the least that replay holds.
      evaluate_interval: env steps between two evaluations of the greedy policy; None for no evaluation.
      episodes: of one evaluation.
      seed: of networks, policies and environments.
      updates_per_env_step: gradient steps an env step.
      learning_rate: of all networks and of the temperature.
      gamma: discount.
      tau: share of the new weights in the target networks.
      batch_size: transitions of a gradient step.
      units: of each of two hidden layers, in every network.
      capacity: transitions in replay.
    """

    algorithm: str
    environment: str
    environments: int
    env_steps: int
    random_steps: int
    evaluate_interval: int | None
    episodes: int
    seed: int
    learning_rate: float
    gamma: float
    tau: float
    batch_size: int
    wait_s: float = 0.0
    updates_per_env_step: float = 1.0
    units: int = 256
    capacity: int = 1_000_000

    def to_json(self) -> str:
        """Returns it as one line."""
        return json.dumps(dataclasses.asdict(self))

    @property
    def env_steps_per_training(self) -> int:
        """Steps of all environments together between two times of training, at least 1."""
        return max(1, round(1 / (self.environments * self.updates_per_env_step)))

    @property
    def updates_per_training(self) -> int:
        """Gradient steps each time."""
        return max(1, round(self.environments * self.updates_per_env_step))


def from_json(line: str) -> Job:
    """Reads what `to_json` returned."""
    return Job(**json.loads(line))
