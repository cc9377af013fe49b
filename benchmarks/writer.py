"""`writer`: CPU time of an actor for writing one env step into a replay server in another process."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import reverb
import tree
from tf_agents.replay_buffers import reverb_utils
from tf_agents.trajectories import trajectory

from actorlearner.environments.env_steps import EnvSteps
from actorlearner.replay.layout import ReplayLayout, make_layout
from benchmarks import rounds, stock
from benchmarks.halfcheetah import configuration, random_env_steps, single
from benchmarks.report import Row
from benchmarks.servers import replay_server

_ENV_STEPS = 8_000
_ROUNDS = 5
_FLUSH_S = 60


def run() -> tuple[list[Row], dict[str, Any]]:
    """Measures all threads of the writing process together, confirmation by the server included."""
    details: dict[str, Any] = {}
    config = configuration()
    with replay_server() as server:
        client = reverb.Client(server.address)
        measurements: dict[str, rounds.Measurement] = {}
        for environments in (1, 4, 8):
            specs, steps = random_env_steps(config, environments, _ENV_STEPS // environments)
            layout = make_layout(config, specs)
            measurements[f"ours, {environments} environments"] = _measure(
                functools.partial(_write_ours, layout, client, environments, steps)
            )
            if environments == 1:
                stock_steps = _trajectories(single(steps))
        measurements["stock"] = _measure(functools.partial(_write_stock, client, stock_steps))
        values = rounds.medians(measurements, _ROUNDS, details)
    rows = [
        Row(
            "writer",
            f"CPU µs an env step for writing, {environments} environments an actor; ratio",
            values["stock"],
            values[f"ours, {environments} environments"],
            values[f"ours, {environments} environments"] / values["stock"],
            0.25,
            False,
        )
        for environments in (1, 4, 8)
    ]
    return rows, details


def _measure(write: Callable[[], None]) -> rounds.Measurement:
    return lambda: 1e6 * rounds.cpu_seconds(write) / _ENV_STEPS


def _write_ours(
    layout: ReplayLayout, client: reverb.Client, environments: int, steps: list[EnvSteps]
) -> None:
    writer = layout.writer(client, environments)
    for step in steps:
        writer.write(step)
        while not writer.flush(timeout_s=1):
            pass
    if not writer.close(_FLUSH_S):
        raise RuntimeError(f"the server did not take all items within {_FLUSH_S} s")


def _write_stock(client: reverb.Client, steps: list[trajectory.Trajectory]) -> None:
    observer = reverb_utils.ReverbAddTrajectoryObserver(client, stock.EXPERIENCE_TABLE, sequence_length=2)
    for step in steps:
        observer(step)
    observer.flush()
    observer.close()


def _trajectories(steps: list[EnvSteps]) -> list[trajectory.Trajectory]:
    """What a stock driver hands to its observer for these env steps of one environment."""
    first, middle, last = (np.asarray(step_type, np.int32) for step_type in (0, 1, 2))
    made = []
    for step in steps:
        step = tree.map_structure(lambda leaf: leaf[0], step)
        made.append(
            trajectory.Trajectory(
                step_type=first if step.first else middle,
                observation=step.observation,
                action=step.action,
                policy_info=(),
                next_step_type=last if step.last else middle,
                reward=np.asarray(step.reward),
                discount=np.asarray(step.discount),
            )
        )
        if step.last:
            zero, one = np.zeros([], np.float32), np.ones([], np.float32)
            made.append(trajectory.Trajectory(last, step.next_observation, step.action, (), first, zero, one))
    return made
