"""The downtime of a role after each harm."""

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from actorlearner.config.schema import Config
from actorlearner.process.cores import collect_actors
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from benchmarks.chaos.harm import Done
from benchmarks.chaos.numbered import Produced
from benchmarks.chaos.watch import Watch


def working_times(
    config: Config,
    directory: RunDirectory,
    produced: Sequence[Produced],
    watch: Watch,
    done: Sequence[Done],
) -> dict[str, list[float]]:
    """Returns the sorted Unix times at which each role was working.

    Collect actors work when they take an env step, the learner when it records a train step (every two
    seconds), and the replay server when it is ready and whenever it records its size (every two seconds). The
    eval actor often has nothing to do: it works when it is ready, and when a harm that it survives has ended.

    Args:
      config: the experiment.
      directory: of the run.
      produced: by the environments of the collect actors.
      watch: of the run.
      done: all harms.
    """
    roles = watch.roles
    times: dict[str, list[float]] = {
        "replay-server": [record["time"] for record in read_records(directory.metrics("replay"))],
        "learner": [record["time"] for record in read_records(directory.metrics("learner"))],
        **{f"collect-actor-{i}": [] for i in range(collect_actors(config.collect))},
        "eval-actor": [each.ended for each in done if each.ended is not None and each.harm.length_s > 0],
    }
    for each in produced:
        times[roles[each.pid]] += each.times.tolist()
    for role, time in watch.ready:
        if role in ("replay-server", "eval-actor"):
            times[role].append(time)
    return {role: sorted(of_role) for role, of_role in times.items()}


class Downtime(NamedTuple):
    """From a harm until the role works again, in Unix seconds."""

    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.ended - self.began


def downtimes(
    done: Sequence[Done], working: Mapping[str, Sequence[float]], ended: float
) -> dict[str, list[Downtime]]:
    """Returns the downtime from the start of each harm until its role works again after the harm.

    A role that needs another one, which was harmed as well, waits for that one, too.

    Args:
      done: the harms.
      working: the result of `working_times`.
      ended: when the run ended, in Unix seconds: the end of the downtime of a role that was not seen again.
    """
    result: dict[str, list[Downtime]] = {role: [] for role in working}
    for each in done:
        times = working[each.harm.role]
        after = bisect.bisect_right(times, ended if each.ended is None else each.ended)
        back = times[after] if after < len(times) else ended
        result[each.harm.role].append(Downtime(each.began, back))
    return result


def total_s(downtimes: Iterable[Downtime]) -> float:
    """Returns the seconds of all downtimes together; overlaps count once."""
    total, until = 0.0, -math.inf
    for downtime in sorted(downtimes):
        total += max(0.0, downtime.ended - max(until, downtime.began))
        until = max(until, downtime.ended)
    return total
