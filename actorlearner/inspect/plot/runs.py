"""The recorded evaluations and learner reports of runs, read from their metrics files."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from actorlearner.config.resolved import fingerprint
from actorlearner.config.schema import Config
from actorlearner.errors import one_line
from actorlearner.inspect.plot.statistics import Numbers
from actorlearner.records.manifest import created_at
from actorlearner.records.metrics import read_records, without_rolled_back
from actorlearner.records.run_directory import RunDirectory

_PAUSE_S = 60.0
"""Gaps longer than this, in seconds, count as pauses."""


class RunningTime:
    """Converts Unix times into seconds of running, without the pauses of a run."""

    def __init__(self, moments: Sequence[float], *, steady: bool = True) -> None:
        """Finds the pauses between the records of a run.

        Args:
          moments: Unix times of all records, in any order; the earliest is the start of the run.
          steady: whether a running run records all the time. If not, no gap counts as a pause.
        """
        self._moments = np.unique(np.asarray(moments, np.float64))
        passed = np.diff(self._moments)
        if steady:
            passed[passed > _PAUSE_S] = 0.0
        self._seconds = np.concatenate([np.zeros(min(1, len(self._moments))), np.cumsum(passed)])

    def at(self, moments: Numbers) -> Numbers:
        """Returns the seconds of running before `moments`, Unix times [n], as float64 [n]."""
        if not len(self._moments):
            return np.zeros(len(moments))
        return np.interp(moments, self._moments, self._seconds)


Records = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Evaluations:
    """The evaluations of a run, in the order of their train steps, each train step once.

    Values are NaN where unknown.

    Attributes:
      train_steps, env_steps: of the evaluated policies, float64 [evaluations].
      seconds: of running at their reports, float64 [evaluations].
      returns: undiscounted returns of each evaluation's episodes, float64 [episodes].
      info: the values of each metric of `environment.info_metrics`, as `returns`; without the episodes that
        have none.
    """

    train_steps: Numbers
    env_steps: Numbers
    seconds: Numbers
    returns: tuple[Numbers, ...]
    info: Mapping[str, tuple[Numbers, ...]]


@dataclasses.dataclass(frozen=True)
class Training:
    """The reports of a run's learner, oldest first. All arrays are float64 [reports].

    Attributes:
      seconds: of running.
      train_steps: of the learner; they decrease where it rolled back to a checkpoint.
      env_steps: of all actors together; they decrease where replay rolled back.
      samples_per_insert: since the run began, in transitions.
      staleness_mean, staleness_max: in train steps; NaN where unknown.
    """

    seconds: Numbers
    train_steps: Numbers
    env_steps: Numbers
    samples_per_insert: Numbers
    staleness_mean: Numbers
    staleness_max: Numbers


@dataclasses.dataclass(frozen=True)
class RecordedRun:
    """A run, finished or running.

    Attributes:
      name: the name of its directory.
      config: its configuration.
      evaluations: empty before the first one.
      training: the learner's reports; empty before the first one.
    """

    name: str
    config: Config
    evaluations: Evaluations
    training: Training


_Part = tuple[RunDirectory, Config, dict[str, Any]]
"""A directory of a run, with its configuration and its manifest."""


def read_runs(
    directories: Iterable[tuple[RunDirectory, Config]], complain: Callable[[str], None]
) -> list[RecordedRun]:
    """Reads the metrics of runs, in the order given.

    Directories of roles that share a run id are one run. So are the directories of its further replay
    servers, whose ids are in the manifests of the other roles.

    Args:
      directories: run directories with their configurations.
      complain: receives a line for each unreadable file and each run without an evaluation.
    """
    read = [(directory, config, _manifest(directory, complain)) for directory, config in directories]
    first_server = {
        other: manifest.get("run_id")
        for _, _, manifest in read
        for other in (manifest.get("other_servers") or {}).values()
    }
    parts: dict[tuple[str, str], list[_Part]] = {}
    for directory, config, manifest in read:
        run_id = manifest.get("run_id")
        run_id = first_server.get(run_id) or run_id or str(directory.path)
        parts.setdefault((run_id, fingerprint(config)), []).append((directory, config, manifest))
    return [_read(each, complain) for each in parts.values()]


def _read(parts: Sequence[_Part], complain: Callable[[str], None]) -> RecordedRun:
    first, config, _ = parts[0]
    name = first.path.name
    files = [_metrics(directory, complain) for directory, _, _ in parts]
    every = [
        record["time"] for of_directory in files for records in of_directory.values() for record in records
    ]
    created = [created_at(manifest) for _, _, manifest in parts]
    # A replay server reports every two seconds, also while all others wait. Without its reports, a pause
    # looks like an idle eval actor.
    steady = any(of_directory.get("replay") for of_directory in files)
    time = RunningTime([*every, *(moment for moment in created if moment is not None)], steady=steady)
    evaluations = _evaluations(_merged(files, "eval"), time, config.environment.info_metrics)
    if not evaluations.returns:
        why = "evaluation is off" if config.evaluate.interval is None else "no evaluation yet"
        complain(f"{name}: {why}, so it has no returns to draw")
    return RecordedRun(name, config, evaluations, _training(_merged(files, "learner"), time))


def _metrics(directory: RunDirectory, complain: Callable[[str], None]) -> dict[str, Records]:
    """Returns the usable records of each metrics file of a directory, by its name."""
    found: dict[str, Records] = {}
    for path in sorted(directory.metrics("").parent.glob("*.jsonl")):
        try:
            records = read_records(path)
        except OSError as error:
            complain(f"{path}: skipped, cannot be read: {one_line(error)}")
            continue
        found[path.stem] = [record for record in records if _number(record.get("time")) > 0]
    return found


def _merged(files: Sequence[dict[str, Records]], name: str) -> Records:
    """Returns the records of all files with a name, oldest first and without duplicates."""
    records = {json.dumps(record): record for of_directory in files for record in of_directory.get(name, [])}
    return sorted(records.values(), key=lambda record: float(record["time"]))


def _evaluations(records: Records, time: RunningTime, info_metrics: Sequence[str]) -> Evaluations:
    usable = (
        each for each in records if np.isfinite(_number(each.get("train_step"))) and len(_returns(each))
    )
    kept = without_rolled_back(usable)
    return Evaluations(
        train_steps=_column(kept, "train_step"),
        env_steps=_column(kept, "env_steps"),
        seconds=time.at(_column(kept, "time")),
        returns=tuple(_returns(record) for record in kept),
        info={
            metric: tuple(_finite((record.get("info") or {}).get(metric)) for record in kept)
            for metric in info_metrics
        },
    )


def _returns(record: dict[str, Any]) -> Numbers:
    return _finite(record.get("returns"))


def _finite(values: Sequence[Any] | None) -> Numbers:
    numbers = np.array([_number(value) for value in values or ()], np.float64)
    return numbers[np.isfinite(numbers)]


def _training(records: Records, time: RunningTime) -> Training:
    return Training(
        seconds=time.at(_column(records, "time")),
        train_steps=_column(records, "train_step"),
        env_steps=_column(records, "env_steps"),
        samples_per_insert=_column(records, "samples_per_insert"),
        staleness_mean=_column(records, "staleness_mean"),
        staleness_max=_column(records, "staleness_max"),
    )


def _column(records: Records, key: str) -> Numbers:
    return np.array([_number(record.get(key)) for record in records], np.float64)


def _number(value: Any) -> float:
    """Returns a record's value as a float; JSON has null for values that are not finite."""
    return float(value) if isinstance(value, (int, float)) else float("nan")


def _manifest(directory: RunDirectory, complain: Callable[[str], None]) -> dict[str, Any]:
    try:
        return {**json.loads(directory.manifest.read_bytes())}
    except (OSError, TypeError, ValueError) as error:
        complain(f"{directory.manifest}: skipped, cannot be read: {one_line(error)}")
        return {}
