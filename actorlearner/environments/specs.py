"""The tensor specs of an environment, which agents, tables and policies are built from."""

import dataclasses
from typing import TYPE_CHECKING

import tree
from dm_env import specs

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.environment import Environment, Nest
from actorlearner.environments.guarded import GuardedEnvironment
from actorlearner.environments.load import load_environment

if TYPE_CHECKING:
    from tf_agents.specs import array_spec
    from tf_agents.trajectories import time_step as ts


@dataclasses.dataclass(frozen=True)
class EnvironmentSpecs:
    """Nests of an environment's TensorSpecs, without a batch dimension."""

    observation: Nest
    action: Nest
    time_step: "ts.TimeStep"


def environment_specs(environment: Environment | GuardedEnvironment) -> EnvironmentSpecs:
    """Returns the specs of an environment; rewards and discounts are float32 scalars."""
    from tf_agents.specs import tensor_spec
    from tf_agents.trajectories import time_step as ts

    observation, action = (
        tree.map_structure(lambda leaf: tensor_spec.from_spec(_tf_agents_spec(leaf)), spec)
        for spec in (environment.observation_spec, environment.action_spec)
    )
    return EnvironmentSpecs(observation, action, ts.time_step_spec(observation))


def _tf_agents_spec(spec: specs.Array) -> "array_spec.ArraySpec":
    from tf_agents.specs import array_spec

    if isinstance(spec, specs.BoundedArray):
        return array_spec.BoundedArraySpec(spec.shape, spec.dtype, spec.minimum, spec.maximum, spec.name)
    return array_spec.ArraySpec(spec.shape, spec.dtype, spec.name)


def load_specs(config: EnvironmentConfig) -> EnvironmentSpecs:
    """Loads the environment, reads its specs and closes it.

    Raises:
      ConfigurationError: the environment cannot be loaded.
    """
    environment = load_environment(config, seed=0)
    try:
        return environment_specs(environment)
    finally:
        environment.close()
