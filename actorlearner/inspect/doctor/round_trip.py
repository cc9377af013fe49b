"""A check that sends transitions of the environment through a real replay server."""

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from actorlearner.errors import one_line
from actorlearner.inspect.doctor.check import CheckedExperiment, Result, fail, ok

if TYPE_CHECKING:
    from actorlearner.replay.packed import PackedLayout

_ROLE = "doctor"
_ENV_STEPS = 10
_CAPACITY = 100
_READ = 20
"""The number of sampled transitions."""

_FLUSH_S = 30.0


def check_round_trip(experiment: CheckedExperiment) -> Result:
    """Writes transitions as an actor does, samples some as the learner does, and compares them.

    It tests the machine and not the algorithm, so it uses packed transitions for every agent: filling a
    sequence could take too many env steps.
    """
    import reverb

    from actorlearner.network.ports import free_port
    from actorlearner.replay.experience_table import experience_table
    from actorlearner.replay.packed import PackedLayout

    replay = dataclasses.replace(
        experiment.config.replay, capacity=_CAPACITY, min_size=1, updates_per_env_step=None
    )
    config = dataclasses.replace(experiment.config, replay=replay)
    try:
        steps = _experience(experiment)
    except Exception as error:  # The environment's code failed, not the connection.
        return fail(f"the environment failed: {one_line(error)}")
    agent = experiment.config.agent
    layout = PackedLayout(experiment.specs, agent.n_step, agent.gamma)
    port = free_port()
    server = reverb.Server([experience_table(config, layout)], port)
    try:
        began = time.perf_counter()
        _write(f"localhost:{port}", layout, steps)
        found = _read(f"localhost:{port}", layout)
        seconds = time.perf_counter() - began
    finally:
        server.stop()
    written = _transitions(experiment, steps)
    if not all(any(_same(transition, other) for other in written) for transition in found):
        return fail("sampled transitions differ from the written ones: make setup, as packages may not fit")
    return ok(f"{len(written)} transitions written, {len(found)} sampled and equal, in {seconds:.1f} s")


def _experience(experiment: CheckedExperiment) -> list[Any]:
    """Returns the EnvSteps of one environment after random actions."""
    from actorlearner.acting.policy_function import RandomPolicy
    from actorlearner.agents.experience import RANDOM_TRAIN_STEP
    from actorlearner.environments.batch import EnvironmentBatch
    from actorlearner.environments.guarded import load_guarded

    config = experiment.config
    batch = EnvironmentBatch([load_guarded(config.environment, config.seed, _ROLE, 0, 0)])
    policy = RandomPolicy(experiment.specs, 1, experiment.seed, mask=config.agent.action_mask)
    steps = [
        batch.step(policy(batch.observations, batch.first), RANDOM_TRAIN_STEP) for _ in range(_ENV_STEPS)
    ]
    batch.close()
    return steps


def _write(address: str, layout: "PackedLayout", steps: list[Any]) -> None:
    import reverb

    writer = layout.writer(reverb.Client(address), environments=1)
    for step in steps:
        writer.write(step)
    if not writer.close(_FLUSH_S):
        raise TimeoutError(f"the replay server did not accept {len(steps)} transitions in {_FLUSH_S:.0f} s")


def _read(address: str, layout: "PackedLayout") -> list[Any]:
    """Samples transitions one by one."""
    import tree

    from actorlearner.process.role_process import keep_until_exit
    from actorlearner.replay.dataset import experience_dataset

    dataset = experience_dataset([address], layout, batch_size=1, batch_size_per_replica=1)
    iterator = dataset.map(lambda batch, _: layout.decode(batch)).as_numpy_iterator()
    keep_until_exit(iterator)
    return [tree.map_structure(lambda leaf: leaf[0], next(iterator)) for _ in range(_READ)]


def _transitions(experiment: CheckedExperiment, steps: list[Any]) -> list[Any]:
    """Returns the transitions of env steps, computed without a layout."""
    import tree

    from actorlearner.replay.n_step import NStepTransitions

    agent = experiment.config.agent
    made = NStepTransitions(agent.n_step, agent.gamma, environments=1)
    batches = [batch for batch in [*map(made.add, steps), made.end()] if batch is not None]
    return [
        tree.map_structure(lambda leaf, i=i: leaf[i], batch)
        for batch in batches
        for i in range(len(batch.reward))
    ]


def _same(transition: Any, other: Any) -> bool:
    """Returns whether two transitions are equal, but for the rounding of n-step returns."""
    import tree

    leaves = zip(tree.flatten(transition), tree.flatten(other), strict=True)
    return all(np.allclose(leaf, expected, rtol=1e-5, atol=1e-6) for leaf, expected in leaves)
