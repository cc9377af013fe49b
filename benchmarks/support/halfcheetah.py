"""The experiment that most benchmarks measure, and real env steps of it."""

import dataclasses
from typing import Any

from actorlearner.acting.policy_function import RandomPolicy
from actorlearner.agents.configuration import load_config
from actorlearner.agents.experience import RANDOM_TRAIN_STEP
from actorlearner.config.schema import Config
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.specs import EnvironmentSpecs, environment_specs

NAME = "HalfCheetahBulletEnv-v0"

NUMBERS_PER_TRANSITION = 26 + 6 + 1 + 1 + 26
"""Observation, action, reward, discount and next observation; four bytes each."""


def configuration(layout: str = "packed", name: str = NAME, **replay: Any) -> Config:
    """Returns the shipped `sac_halfcheetah` with `min_size` 1 and without `updates_per_env_step`.

    Observations are not normalised, because TF-Agents' own code does not do that either.

    Args:
      layout: of the replay.
      name: another environment of pybullet instead.
      **replay: other keys of the replay section.
    """
    config = load_config(
        "sac_halfcheetah", [f"environment.name={name}", "agent.observation_normalizer=false"]
    )
    settings: dict[str, Any] = {"layout": layout, "min_size": 1, "updates_per_env_step": None} | replay
    return dataclasses.replace(config, replay=dataclasses.replace(config.replay, **settings))


def random_env_steps(
    config: Config, environments: int, count: int
) -> tuple[EnvironmentSpecs, list[EnvSteps]]:
    """Takes `count` env steps in each environment with random actions; returns what was experienced."""
    made = [load_guarded(config.environment, 0, "benchmark", 0, i) for i in range(environments)]
    specs = environment_specs(made[0])
    batch = EnvironmentBatch(made)
    policy = RandomPolicy(specs, environments, seed=0)
    steps = [batch.step(policy(batch.observations, batch.first), RANDOM_TRAIN_STEP) for _ in range(count)]
    batch.close()
    return specs, steps
