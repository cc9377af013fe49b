"""`scaling`: 1 to 32 collect actors, whose environments wait, and one that comes late.

The environments wait for most of an env step, as for robots or for simulators elsewhere, so that two cores do
for many actors. Nothing trains; policies are published as a learner would.
"""

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from actorlearner.environments.specs import load_specs
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.replay.packed import PackedLayout
from benchmarks.scaling_figures import (
    Experiment,
    Size,
    env_steps_per_s,
    on_paper,
    policy_lags_s,
    share_of_linear,
    table,
)
from benchmarks.support.fleet import Fleet, Publishing, configuration
from benchmarks.support.report import Row
from benchmarks.support.servers import cpu_s

_WAIT_S = 0.02
_PUBLISH_INTERVAL_S = 5.0

_LINEAR_TO = 16
_LINEAR_GOAL = 0.95

_LATE_GOAL_S = 15.0

_ON_PAPER = 1_000


def run(
    actors: Sequence[int] = (1, 2, 4, 8, 16, 32),
    window_s: float = 15.0,
    late_beside: int = 16,
    late_turns: int = 3,
) -> tuple[list[Row], dict[str, Any]]:
    """Adds collect actors to one run, and measures at each size once all of them act.

    Args:
      actors: the sizes, ascending.
      window_s: seconds of each measurement.
      late_beside: the size beside which one more actor is started; one of `actors`.
      late_turns: how often.
    """
    limit_tensorflow(threads=1)
    config = configuration(_WAIT_S)
    sizes: list[Size] = []
    late: list[tuple[float, str]] = []
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        fleet = stack.enter_context(closing(Fleet(config, Path(directory) / "run")))
        publishing = stack.enter_context(closing(Publishing(config, fleet, _PUBLISH_INTERVAL_S)))
        for size in actors:
            fleet.grow(size)
            sizes.append(_measure(fleet, publishing, window_s))
            if size == late_beside:
                late = [fleet.start_late() for _ in range(late_turns)]
        experiment = Experiment(
            variables_interval_s=config.collect.variables_interval_s,
            publish_interval_s=_PUBLISH_INTERVAL_S,
            policy_bytes=publishing.policy_bytes,
            transition_bytes=PackedLayout(load_specs(config.environment), n_step=1, gamma=0.99).format.width,
        )
    details = {
        "sizes": [dataclasses.asdict(size) for size in sizes],
        "experiment": dataclasses.asdict(experiment),
        "late": late,
        "lines": [*table(sizes), "", *on_paper(_ON_PAPER, sizes, experiment)],
    }
    rows = [_linear(size, sizes[0]) for size in sizes[1:]]
    return [*rows, _late([seconds for seconds, _ in late], late_beside)], details


def _measure(fleet: Fleet, publishing: Publishing, window_s: float) -> Size:
    """Blocks for `window_s`."""
    actors = fleet.actors
    processes = [fleet.server, *actors]
    began, used = time.time(), [cpu_s(process) for process in processes]
    time.sleep(window_s)
    server_s, *actors_s = (cpu_s(process) - before for process, before in zip(processes, used, strict=True))
    ended = time.time()
    records = [fleet.records(index) for index in range(len(actors))]
    rate = sum(env_steps_per_s(of_actor, began, ended) for of_actor in records)
    return Size(
        actors=len(actors),
        env_steps_per_s=rate,
        cpu_us_per_env_step=1e6 * sum(actors_s) / (ended - began) / rate,
        server_cores=server_s / (ended - began),
        policy_lag_s=statistics.median(policy_lags_s(records, publishing.times, began)),
        resident_bytes=statistics.mean(actor.memory_info().rss for actor in actors),
        proportional_bytes=statistics.mean(actor.memory_full_info().pss for actor in actors),
    )


def _linear(size: Size, one: Size) -> Row:
    what = f"env steps a second, {size.actors} actors that wait {_WAIT_S * 1e3:.0f} ms; ratio to linear"
    share = share_of_linear(size, one)
    goal = _LINEAR_GOAL if size.actors <= _LINEAR_TO else None
    return Row("scaling", what, size.env_steps_per_s / share, size.env_steps_per_s, share, goal, True)


def _late(seconds: list[float], beside: int) -> Row:
    what = f"seconds from the start of a late actor, beside {beside}, to its first env step"
    figure = statistics.median(seconds)
    return Row("scaling", what, None, figure, figure, _LATE_GOAL_S, False)
