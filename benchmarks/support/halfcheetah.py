"""The experiment that most benchmarks measure, and real env steps of it."""

from actorlearner.acting.policy_function import RandomPolicy
from actorlearner.agents.configuration import load_config
from actorlearner.agents.experience import RANDOM_TRAIN_STEP
from actorlearner.config.schema import Config
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.specs import EnvironmentSpecs, environment_specs

NAME = "HalfCheetahBulletEnv-v0"


def configuration(layout: str = "packed", name: str = NAME) -> Config:
    """Returns the shipped `sac_halfcheetah` with `min_size` 1 and without `updates_per_env_step`.

    Observations are not normalised, because TF-Agents' own code does not do that either.

    Args:
      layout: of the replay.
      name: another environment of pybullet instead.
    """
    settings = (
        f"environment.name={name}",
        "agent.observation_normalizer=false",
        f"replay.layout={layout}",
        "replay.min_size=1",
        "replay.updates_per_env_step=null",
    )
    return load_config("sac_halfcheetah", settings)


def random_env_steps(
    config: Config, environments: int, count: int
) -> tuple[EnvironmentSpecs, list[EnvSteps]]:
    """Takes `count` env steps in each environment with random actions; returns them."""
    made = [load_guarded(config.environment, 0, "benchmark", 0, i) for i in range(environments)]
    specs = environment_specs(made[0])
    batch = EnvironmentBatch(made)
    policy = RandomPolicy(specs, environments, seed=0)
    steps = [batch.step(policy(batch.observations, batch.first), RANDOM_TRAIN_STEP) for _ in range(count)]
    batch.close()
    return specs, steps
