"""`writer`: CPU time of an actor for writing one env step into a replay server in another process."""

import functools
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import reverb
import tree
from tf_agents.replay_buffers import reverb_utils
from tf_agents.trajectories import trajectory

from actorlearner.environments.environment import EnvSteps
from actorlearner.records.formatting import plural
from actorlearner.replay.layout import ReplayLayout, make_layout
from benchmarks.support import rounds, servers, stock
from benchmarks.support.filling import write
from benchmarks.support.halfcheetah import configuration, random_env_steps
from benchmarks.support.report import Row

_GOAL = 0.25


def run(
    env_steps: int = 8_000, turns: int = 5, environments: Sequence[int] = (1, 4, 8)
) -> tuple[list[Row], dict[str, Any]]:
    """Measures all threads of the writing process together, confirmation by the server included.

    Args:
      env_steps: of all environments together, in one measurement.
      turns: rounds.
      environments: of one actor, each a row.
    """
    config = configuration()
    measurements: dict[str, Callable[[], float]] = {}
    with servers.replay_server() as server:
        client = reverb.Client(server.address)
        for count in environments:
            specs, steps = random_env_steps(config, count, env_steps // count)
            layout = make_layout(config, specs)
            ours = functools.partial(_write_ours, layout, client, count, steps)
            theirs = functools.partial(_write_stock, client, trajectories(steps, count))
            measurements[f"ours, {count}"] = functools.partial(_cpu_us, ours, env_steps)
            measurements[f"stock, {count}"] = functools.partial(_cpu_us, theirs, env_steps)
        details = rounds.in_turn(measurements, turns)
    rows = []
    for count in environments:
        figures = rounds.compared(details, f"ours, {count}", f"stock, {count}")
        what = "CPU µs an env step for writing; ratio to the stock observer"
        settings = (
            f"both: {plural(count, 'environment')}; stock: an observer for each, as it takes no batches"
        )
        rows.append(Row("writer", what, *figures, _GOAL, False, settings))
    return rows, details


def _cpu_us(write: Callable[[], None], env_steps: int) -> float:
    return 1e6 * rounds.cpu_seconds(write) / env_steps


def _write_ours(
    layout: ReplayLayout, client: reverb.Client, environments: int, steps: list[EnvSteps]
) -> None:
    write(steps, layout.writer(client, environments))


def _write_stock(client: reverb.Client, steps: list[list[trajectory.Trajectory]]) -> None:
    observers = [
        reverb_utils.ReverbAddTrajectoryObserver(client, stock.EXPERIENCE_TABLE, sequence_length=2)
        for _ in steps
    ]
    for together in zip_longest(*steps):
        for observer, step in zip(observers, together, strict=True):
            if step is not None:  # An environment with fewer ends of episodes has fewer trajectories.
                observer(step)
    for observer in observers:
        observer.flush()
        observer.close()


def trajectories(steps: list[EnvSteps], environments: int) -> list[list[trajectory.Trajectory]]:
    """Returns what stock drivers hand to their observers for these env steps, for each environment."""
    return [_trajectories(steps, index) for index in range(environments)]


def _trajectories(steps: list[EnvSteps], index: int) -> list[trajectory.Trajectory]:
    first, middle, last = (np.asarray(step_type, np.int32) for step_type in (0, 1, 2))
    made = []
    for batch in steps:
        step = tree.map_structure(lambda leaf: leaf[index], batch)
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
