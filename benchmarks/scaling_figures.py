"""The arithmetic of `scaling`: rates and lags from metrics, and a thousand actors on paper."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.support import markdown
from benchmarks.support.fleet import Record
from benchmarks.support.report import number

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
class Experiment:
    """The settings that do not depend on the number of actors.

    Attributes:
      variables_interval_s: between two polls of an actor for a newer policy.
      publish_interval_s: between two publications.
      policy_bytes: of one publication.
      transition_bytes: of an env step on its way into replay.
    """

    variables_interval_s: float
    publish_interval_s: float
    policy_bytes: int
    transition_bytes: int


def env_steps_per_s(records: Sequence[Record], began: float, ended: float) -> float:
    """The rate of one actor, between its first and its last record in this time.

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
    """For each policy published after `began` that all actors recorded: seconds until the last had it.

    Args:
      records: of each actor.
      published: when each train step's policy was, in Unix seconds.
      began: Unix seconds.
    """
    pulled = [_pulled(of_actor) for of_actor in records]
    return [
        max(times[train_step] for times in pulled) - time
        for train_step, time in published.items()
        if time >= began and all(train_step in times for times in pulled)
    ]


def _pulled(records: Sequence[Record]) -> dict[int, float]:
    """When an actor got the policy of each train step, in Unix seconds."""
    return {record["policy_train_step"]: record["time"] - record["policy_age_s"] for record in records}


def table(sizes: Sequence[Size]) -> list[str]:
    """The figures of all sizes as a Markdown table."""
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
    """Env steps a second, as a share of what as many actors would take if each were as fast as `one` is."""
    return size.env_steps_per_s / (size.actors / one.actors * one.env_steps_per_s)


def on_paper(actors: int, sizes: Sequence[Size], experiment: Experiment) -> list[str]:
    """Returns the extrapolated needs of a number of actors, in Markdown.

    The server's CPU is a straight line through what it took at each size. Everything else is a multiple of
    what one actor takes: its rate alone on the machine, its CPU and memory at the largest size.
    """
    rate = actors * sizes[0].env_steps_per_s / sizes[0].actors
    slope, fixed = np.polyfit([size.actors for size in sizes], [size.server_cores for size in sizes], 1)
    cores = rate * sizes[-1].cpu_us_per_env_step / 1e6
    gibibytes = actors * sizes[-1].resident_bytes / 2**30
    polls = actors / experiment.variables_interval_s
    pulls = actors / experiment.publish_interval_s
    up, down = rate * experiment.transition_bytes / 1e6, pulls * experiment.policy_bytes / 1e6
    return [
        f"On paper, {actors:,} of these actors take {rate:,.0f} env steps/s with",
        "",
        f"- {cores:.1f} cores and {gibibytes:,.0f} GiB on their machines, environments left out;",
        f"- {fixed + slope * actors:.1f} cores of the replay server, {1e3 * slope:.2f} thousandths an actor; "
        f"it answers {polls:,.0f} looks for a newer policy a second, one of each actor every "
        f"{experiment.variables_interval_s:g} s;",
        f"- {up:.1f} MB/s into the replay server, {experiment.transition_bytes} bytes an env step before "
        "Reverb compresses them;",
        f"- {down:.1f} MB/s out of it: {pulls:,.0f} pulls a second, with a policy of "
        f"{experiment.policy_bytes / 1e6:.2f} MB every {experiment.publish_interval_s:g} s.",
    ]
