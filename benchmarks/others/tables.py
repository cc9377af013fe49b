"""The tables of the measurements: medians of the rounds."""

import dataclasses
import gzip
import json
import math
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from actorlearner.records.formatting import plural
from benchmarks.others.contenders import LEARN, TASKS
from benchmarks.others.job import Job
from benchmarks.others.measure import SUFFIX, Record
from benchmarks.support import markdown
from benchmarks.support.report import number

_WARM_UP = 1_000
"""Train steps that rates leave out, or a quarter of all if that is less: compilation, and the start."""

_MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Run:
    """One training, as `measure` keeps it.

    Attributes:
      contender: its name.
      job: what was trained.
      began: Unix seconds of the command's start.
      progress: records of steps, in their order.
      returns: the mean return of each evaluation, by its env steps.
      peak_bytes: the greatest memory of all processes together.
      source: the commit of this project, the day, and the machine.
    """

    contender: str
    job: Job
    began: float
    progress: list[Record]
    returns: dict[int, float]
    peak_bytes: int
    source: str

    def rate(self, key: str) -> float:
        """Returns `env_steps` or `train_steps` a second after the warm-up, evaluations left out."""
        warm_up = min(_WARM_UP, self.progress[-1]["train_steps"] // 4)
        first = next(record for record in self.progress if record["train_steps"] >= max(1, warm_up))
        last = self.progress[-1]
        seconds = self._seconds(last) - self._seconds(first)
        return float((last[key] - first[key]) / seconds) if seconds else math.nan

    def minutes_to(self, target: float) -> float:
        """Returns minutes of start and training until an evaluated policy had the return; inf if none had."""
        reached = [env_steps for env_steps, value in self.returns.items() if value >= target]
        if not reached:
            return math.inf
        return self.minutes_at(min(reached))

    def minutes_at(self, env_steps: int) -> float:
        """Returns minutes of start and training until then, evaluations left out."""
        known = [record["env_steps"] for record in self.progress]
        seconds = [self._seconds(record) for record in self.progress]
        return float(np.interp(env_steps, known, seconds)) / 60

    def return_at(self, env_steps: int) -> float:
        """Returns the return there, on the line between two evaluations."""
        return float(np.interp(env_steps, list(self.returns), list(self.returns.values())))

    def _seconds(self, record: Record) -> float:
        return float(record["time"] - self.began - record["evaluating_s"])


def read(path: Path) -> Run:
    """Reads a file that `measure` wrote."""
    start, *records, end = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    evaluations = [record for record in records if record["kind"] == "evaluation"]
    day = time.strftime("%Y-%m-%d", time.gmtime(start["time"]))
    return Run(
        contender=start["contender"],
        job=Job(**start["job"]),
        began=start["time"],
        progress=[record for record in records if record["kind"] == "progress"],
        returns={record["env_steps"]: statistics.mean(record["returns"]) for record in evaluations},
        peak_bytes=end["peak_bytes"],
        source=f"Commit {start['commit']}, {day}, {start['machine']}.",
    )


def tables(out: Path) -> list[str]:
    """Returns the lines of a folder's tables: one for each environment and length, one of slow simulators."""
    lines: list[str] = []
    for runs in tasks(out):
        lines += [*learning_table(runs), "", *sources(runs), ""]
    slow = [read(path) for path in sorted(out.glob(f"slow/*{SUFFIX}"))]
    return lines + ([*slow_table(slow), "", *sources(slow)] if slow else [])


def sources(runs: Sequence[Run]) -> list[str]:
    """Returns the commit, day and machine of the runs, each combination once."""
    return sorted({run.source for run in runs})


def tasks(out: Path) -> list[list[Run]]:
    """Returns the trainings in the folder `learn`, grouped by environment and number of env steps."""
    found: dict[tuple[str, int], list[Run]] = {}
    for path in sorted(out.glob(f"learn/*{SUFFIX}")):
        run = read(path)
        found.setdefault((run.job.environment, run.job.env_steps), []).append(run)
    return [found[task] for task in sorted(found)]


def learning_table(runs: Sequence[Run]) -> list[str]:
    """Returns the table of one task, at the env steps that every run was evaluated at or after."""
    target = TASKS[runs[0].job.environment].target
    env_steps = min(max(run.returns) for run in runs)
    header = (runs[0].job.environment, "rounds", "env steps/s", "train steps/s",
              f"return at {env_steps:,} env steps", f"minutes to a return of {target:,.0f}",
              "peak memory, MiB")  # fmt: skip
    rows = []
    for name, rounds in by_contender(runs).items():
        rows.append((
            name,
            str(len(rounds)),
            _median([run.rate("env_steps") for run in rounds]),
            _median([run.rate("train_steps") for run in rounds]),
            _median_and_range([run.return_at(env_steps) for run in rounds]),
            _median([run.minutes_to(target) for run in rounds]),
            _median([run.peak_bytes / _MIB for run in rounds]),
        ))  # fmt: skip
    return markdown.table(header, rows)


def by_contender(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Returns the rounds of each contender, in the order in which they are declared."""
    names = sorted({run.contender for run in runs}, key=tuple(LEARN).index)
    return {name: [run for run in runs if run.contender == name] for name in names}


def slow_table(runs: Sequence[Run]) -> list[str]:
    """Returns the env steps a second of each contender, a column for each number of environments."""
    sizes = sorted({run.job.environments for run in runs})
    heads = [plural(size, "environment") for size in sizes]
    rows = []
    pairs = dict.fromkeys((run.contender, run.job.updates_per_env_step) for run in runs)
    for name, updates in pairs:
        own = [run for run in runs if (run.contender, run.job.updates_per_env_step) == (name, updates)]
        cells = [
            _median([run.rate("env_steps") for run in own if run.job.environments == size]) for size in sizes
        ]
        rows.append((name, number(updates), *cells))
    return markdown.table(("env steps/s", "updates an env step", *heads), rows)


def _median(values: Sequence[float]) -> str:
    """Returns the median as text; `-` if it is not finite, empty without values.

    The minutes to a return that at most half of the rounds reached have no finite median.
    """
    if not values:
        return ""
    value = statistics.median(values)
    return number(value) if math.isfinite(value) else "-"


def _median_and_range(values: Sequence[float]) -> str:
    median = number(statistics.median(values))
    return f"{median} ({number(min(values))} to {number(max(values))})" if len(values) > 1 else median
