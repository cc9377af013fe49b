"""Transitions of the environment through a real replay server."""

import dataclasses
import time
from typing import Any

import numpy as np

from actorlearner.errors import one_line
from actorlearner.inspect.doctor.result import Result, fail, ok
from actorlearner.inspect.doctor.subject import Subject

_ROLE = "doctor"
_ENV_STEPS = 10
_CAPACITY = 100
_READ = 20
"""Transitions that are sampled."""

_FLUSH_S = 30.0


def check_round_trip(subject: Subject) -> Result:
    """Writes transitions as an actor does, samples some as the learner does, and compares them."""
    from actorlearner.process.ports import free_port
    from actorlearner.replay.tables import experience_table, start_server

    replay = dataclasses.replace(
        subject.config.replay, capacity=_CAPACITY, min_size=1, updates_per_env_step=None
    )
    config = dataclasses.replace(subject.config, replay=replay)
    try:
        steps = _experience(subject)
    except Exception as error:  # Of the environment's code: no connection is to blame.
        return fail(f"the environment failed: {one_line(error)}")
    port = free_port()
    server = start_server([experience_table(config, subject.layout)], port)
    try:
        began = time.perf_counter()
        _write(f"localhost:{port}", subject, steps)
        found = _read(f"localhost:{port}", subject)
        seconds = time.perf_counter() - began
    finally:
        server.stop()
    written = _transitions(subject, steps)
    if not all(any(_same(transition, other) for other in written) for transition in found):
        return fail("what was sampled is not what was written: make setup, as packages may not fit")
    return ok(f"{len(written)} transitions written, {len(found)} sampled and equal, in {seconds:.1f} s")


def _experience(subject: Subject) -> list[Any]:
    """Some EnvSteps of one environment with random actions."""
    from actorlearner.acting.policy_function import RandomFunction
    from actorlearner.environments.batch import EnvironmentBatch
    from actorlearner.environments.guarded import load_guarded
    from actorlearner.replay.transition import RANDOM_POLICY

    config = subject.config
    batch = EnvironmentBatch([load_guarded(config.environment, config.seed, _ROLE, 0, 0)])
    policy = RandomFunction(subject.specs, 1, subject.seed)
    steps = [batch.step(policy(batch.observations, batch.first), RANDOM_POLICY) for _ in range(_ENV_STEPS)]
    batch.close()
    return steps


def _write(address: str, subject: Subject, steps: list[Any]) -> None:
    import reverb

    writer = subject.layout.writer(reverb.Client(address), environments=1)
    for step in steps:
        writer.write(step)
    if not writer.close(_FLUSH_S):
        raise TimeoutError(f"the replay server did not take {len(steps)} transitions in {_FLUSH_S:.0f} s")


def _read(address: str, subject: Subject) -> list[Any]:
    """Samples transitions one by one."""
    import tree

    from actorlearner.process.process import keep_until_exit
    from actorlearner.replay.dataset import experience_dataset

    dataset = experience_dataset([address], subject.layout, batch_size=1, batch_size_per_replica=1)
    iterator = dataset.map(lambda batch, _: subject.layout.decode(batch)).as_numpy_iterator()
    keep_until_exit(iterator)
    return [tree.map_structure(lambda leaf: leaf[0], next(iterator)) for _ in range(_READ)]


def _transitions(subject: Subject, steps: list[Any]) -> list[Any]:
    """The transitions of env steps, without any layout."""
    import tree

    from actorlearner.replay.n_step import NStepTransitions

    agent = subject.config.agent
    made = NStepTransitions(agent.n_step, agent.gamma, environments=1)
    batches = [batch for batch in [*map(made.add, steps), made.end()] if batch is not None]
    return [
        tree.map_structure(lambda leaf, i=i: leaf[i], batch)
        for batch in batches
        for i in range(len(batch.reward))
    ]


def _same(transition: Any, other: Any) -> bool:
    """Whether two transitions are equal; returns of several env steps may be rounded differently."""
    import tree

    leaves = zip(tree.flatten(transition), tree.flatten(other), strict=True)
    return all(np.allclose(leaf, expected, rtol=1e-5, atol=1e-6) for leaf, expected in leaves)
