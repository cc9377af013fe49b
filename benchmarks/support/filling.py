"""Fills the experience tables of a benchmark's server with real env steps."""

from collections.abc import Sequence

import reverb

from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.layout import make_layout
from actorlearner.replay.writer import ReplayWriter
from benchmarks.support.halfcheetah import configuration, random_env_steps
from benchmarks.support.servers import ServerProcess

ENVIRONMENTS = 8
_TIMEOUT_S = 60.0


def fill(server: ServerProcess, env_steps: int) -> EnvironmentSpecs:
    """Writes the same env steps in both layouts; blocks until the server has them all."""
    specs, steps = random_env_steps(configuration(), ENVIRONMENTS, env_steps // ENVIRONMENTS)
    client = reverb.Client(server.address)
    for name in ("packed", "trajectory"):
        write(steps, make_layout(configuration(name), specs).writer(client, ENVIRONMENTS))
    return specs


def write(steps: Sequence[EnvSteps], writer: ReplayWriter) -> None:
    """Writes env steps; blocks until the server has them all, and fails if it does not take any for 60 s."""
    for step in steps:
        writer.write(step)
        if not writer.flush(_TIMEOUT_S):
            raise RuntimeError("the benchmark's server does not take env steps")
    if not writer.close(_TIMEOUT_S):
        raise RuntimeError("the benchmark's server did not take the last env steps")
