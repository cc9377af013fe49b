"""`scaling`: 1 to 32 collect actors, whose environments wait, and one that comes late.

The environments wait for most of an env step, as for robots or for simulators elsewhere, so that two cores
are enough for many actors. Nothing trains; policies are published as a learner would.
"""

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from actorlearner.environments.specs import load_specs
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.replay.packed import PackedLayout
from benchmarks.support import markdown
from benchmarks.support.fleet import Fleet, Publishing, Record, configuration
from benchmarks.support.report import Row, number
from benchmarks.support.servers import cpu_s

_WAIT_S = 0.02
_PUBLISH_INTERVAL_S = 5.0

_LINEAR_TO = 16
_LINEAR_GOAL = 0.95

_LATE_GOAL_S = 15.0

_ON_PAPER = 1_000

_MIB = float(1 << 20)


@dataclasses.dataclass(frozen=True)
class Size:
    """The measurements with a number of collect actors.

    Attributes:
      actors: how many.
      env_steps_per_s: of all of them together.
      cpu_us_per_env_step: of the actors' processes.
      server_cores: CPU seconds a second of the replay server.
      policy_lag_s: from the publication of a policy until the last actor had it, the median of several.
      resident_bytes: of an actor, with all that it shares.
      proportional_bytes: of an actor, with its part of what it shares.
    """

    actors: int
    env_steps_per_s: float
    cpu_us_per_env_step: float
    server_cores: float
    policy_lag_s: float
    resident_bytes: float
    proportional_bytes: float


@dataclasses.dataclass(frozen=True)
class Traffic:
    """The traffic between one actor and the replay server; it does not depend on the number of actors.

    Attributes:
      variables_interval_s: between two polls of an actor for a newer policy.
      publish_interval_s: between two publications, each of which every actor pulls.
      policy_bytes: of one publication.
      transition_bytes: of an env step on its way into replay.
    """

    variables_interval_s: float
    publish_interval_s: float
    policy_bytes: int
    transition_bytes: int


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
        traffic = Traffic(
            variables_interval_s=config.collect.variables_interval_s,
            publish_interval_s=_PUBLISH_INTERVAL_S,
            policy_bytes=publishing.policy_bytes,
            transition_bytes=PackedLayout(load_specs(config.environment), n_step=1, gamma=0.99).format.width,
        )
    details = {
        "sizes": [dataclasses.asdict(size) for size in sizes],
        "experiment": dataclasses.asdict(traffic),
        "late": late,
        "lines": [*table(sizes), "", *on_paper(_ON_PAPER, sizes, traffic)],
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


def env_steps_per_s(records: Sequence[Record], began: float, ended: float) -> float:
    """Returns the rate of one actor between its first and its last record in this time.

    Raises:
      ValueError: there are not two of them.
    """
    within = [record for record in records if began <= record["time"] <= ended]
    if len(within) < 2:
        raise ValueError(f"{len(within)} records of an actor in {ended - began:.1f} s; a rate needs 2")
    first, last = within[0], within[-1]
    return float((last["env_steps"] - first["env_steps"]) / (last["time"] - first["time"]))


def policy_lags_s(
    records: Sequence[Sequence[Record]], published: Mapping[int, float], began: float
) -> list[float]:
    """Returns the seconds until the last actor had a policy, for each policy that all actors recorded.

    Args:
      records: of each actor.
      published: when the policy of each train step was published, in Unix seconds.
      began: policies that were published before are left out; Unix seconds.
    """
    pulled = [_pulled(of_actor) for of_actor in records]
    return [
        max(times[train_step] for times in pulled) - time
        for train_step, time in published.items()
        if time >= began and all(train_step in times for times in pulled)
    ]


def _pulled(records: Sequence[Record]) -> dict[int, float]:
    """Returns when an actor got the policy of each train step, in Unix seconds."""
    return {record["policy_train_step"]: record["time"] - record["policy_age_s"] for record in records}


def table(sizes: Sequence[Size]) -> list[str]:
    """Returns the figures of all sizes as a Markdown table."""
    header = (
        "collect actors",
        "env steps/s",
        "share of linear",
        "actors' CPU µs an env step",
        "replay server, cores",
        "new policy at the last actor after, s",
        "memory of an actor, MiB (not shared by forks)",
    )
    rows = [
        (
            str(size.actors),
            number(size.env_steps_per_s),
            f"{share_of_linear(size, sizes[0]):.3f}",
            number(size.cpu_us_per_env_step),
            f"{size.server_cores:.3f}",
            f"{size.policy_lag_s:.2f}",
            f"{size.resident_bytes / _MIB:.0f} ({size.proportional_bytes / _MIB:.0f})",
        )
        for size in sizes
    ]
    return markdown.table(header, rows)


def share_of_linear(size: Size, one: Size) -> float:
    """Returns env steps a second, relative to as many actors of which each is as fast as in `one`."""
    return size.env_steps_per_s / (size.actors / one.actors * one.env_steps_per_s)


def on_paper(actors: int, sizes: Sequence[Size], traffic: Traffic) -> list[str]:
    """Returns the extrapolated needs of a number of actors, in Markdown.

    The server's CPU is a straight line through what it took at each size. Everything else is a multiple of
    what one actor takes: its rate alone on the machine, its CPU and memory at the largest size.
    """
    rate = actors * sizes[0].env_steps_per_s / sizes[0].actors
    slope, fixed = np.polyfit([size.actors for size in sizes], [size.server_cores for size in sizes], 1)
    cores = rate * sizes[-1].cpu_us_per_env_step / 1e6
    gibibytes = actors * sizes[-1].resident_bytes / 2**30
    polls = actors / traffic.variables_interval_s
    pulls = actors / traffic.publish_interval_s
    up, down = rate * traffic.transition_bytes / 1e6, pulls * traffic.policy_bytes / 1e6
    return [
        f"On paper, {actors:,} of these actors take {rate:,.0f} env steps/s with",
        "",
        f"- {cores:.1f} cores and {gibibytes:,.0f} GiB on their machines, environments left out;",
        f"- {fixed + slope * actors:.1f} cores of the replay server, {1e3 * slope:.2f} thousandths an actor; "
        f"it answers {polls:,.0f} looks for a newer policy a second, one of each actor every "
        f"{traffic.variables_interval_s:g} s;",
        f"- {up:.1f} MB/s into the replay server, {traffic.transition_bytes} bytes an env step before "
        "Reverb compresses them;",
        f"- {down:.1f} MB/s out of it: {pulls:,.0f} pulls a second, with a policy of "
        f"{traffic.policy_bytes / 1e6:.2f} MB every {traffic.publish_interval_s:g} s.",
    ]
