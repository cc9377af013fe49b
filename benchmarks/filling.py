"""Fills the experience tables of a benchmark's server with real env steps."""

import reverb

from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.layout import make_layout
from benchmarks.halfcheetah import configuration, random_env_steps
from benchmarks.servers import ServerProcess

ENVIRONMENTS = 8


def fill(server: ServerProcess, env_steps: int) -> EnvironmentSpecs:
    """Writes the same env steps in both layouts; blocks until the server has them all."""
    specs, steps = random_env_steps(configuration(), ENVIRONMENTS, env_steps // ENVIRONMENTS)
    client = reverb.Client(server.address)
    for name in ("packed", "trajectory"):
        writer = make_layout(configuration(name), specs).writer(client, ENVIRONMENTS)
        for step in steps:
            writer.write(step)
            while not writer.flush(timeout_s=5):
                pass
        if not writer.close(timeout_s=60):
            raise RuntimeError("the benchmark's server did not take all env steps within 60 s")
    return specs
