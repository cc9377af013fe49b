"""Metrics files: one JSON object per line, with `time` in Unix seconds."""

import json
import math
import os
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from actorlearner.records.disk import Appender
from actorlearner.records.lines import Tail, read_objects

METRICS_INTERVAL_S = 2.0
"""Seconds between a role's records."""

_FRESH_S = 30.0
"""Seconds for which a record's rates count as current, at least."""

_STEADY_S = 60.0
"""Seconds of records that a forecast uses: rates of single records fluctuate."""

_NEWEST_BYTES = 128 * 1024


NewestRecords = Mapping[str, Mapping[str, Any]]
"""The newest record of each metrics file, by the file's name without its suffix."""

_written: dict[str, Mapping[str, Any]] = {}


def written_records() -> NewestRecords:
    """Returns the newest record of each metrics file that this process writes. Thread-safe."""
    return _written.copy()


class MetricsWriter:
    """Appends records to a metrics file, each complete."""

    def __init__(self, path: Path) -> None:
        """Starts after the file's last complete record."""
        if path.exists():
            content = path.read_bytes()
            os.truncate(path, content.rfind(b"\n") + 1)  # A killed writer may leave half a line.
        self._file = Appender(path, "metrics")
        self._name = path.stem

    def write(self, record: dict[str, Any]) -> None:
        """Appends `record` with the time; while the disk is full, it stays in memory and is written later.

        Raises:
          OSError: writing failed for another reason than a full disk.
        """
        line = {"time": round(time.time(), 3)} | {key: _plain(value) for key, value in record.items()}
        _written[self._name] = line
        self._file.append((json.dumps(line) + "\n").encode())

    def flush(self) -> bool:
        """Appends the records kept in memory; returns whether all are in the file."""
        return self._file.flush()


class Rate:
    """The rate per second of a growing counter."""

    def __init__(self, count: int) -> None:
        """Starts at `count`."""
        self._count = count
        self._time = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether METRICS_INTERVAL_S has passed since the last `update`."""
        return time.monotonic() - self._time >= METRICS_INTERVAL_S

    def update(self, count: int) -> float:
        """Returns the rate since the last update."""
        now = time.monotonic()
        rate = (count - self._count) / max(now - self._time, 1e-9)
        self._count, self._time = count, now
        return rate


def read_records(path: Path) -> list[dict[str, Any]]:
    """Returns the complete records of a metrics file, oldest first; empty if there is no file."""
    return read_objects(path, Tail(path, from_start=True).lines())


def newest_of_each(directory: Path) -> NewestRecords:
    """Returns the newest complete record of each metrics file in a directory."""
    found = {path.stem: newest_records(path) for path in directory.glob("*.jsonl")}
    return {name: records[-1] for name, records in found.items() if records}


def newest_records(path: Path) -> list[dict[str, Any]]:
    """Returns the last few minutes of a metrics file's records, oldest first; empty without a file."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - _NEWEST_BYTES))
        whole, _, _ = file.read().rpartition(b"\n")
    lines = whole.decode(errors="replace").splitlines()
    records = read_objects(path, lines[1:] if length > _NEWEST_BYTES else lines)
    return records or read_records(path)  # An evaluation of thousands of episodes is a longer line.


def without_rolled_back(evaluations: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the evaluations of the run's history, given all of them, oldest first.

    After a learner has rolled back to a checkpoint, train steps are taken and evaluated again: earlier
    evaluations of these train steps, and of later ones, are of policies that are gone.
    """
    kept: list[dict[str, Any]] = []
    for record in evaluations:
        while kept and kept[-1]["train_step"] >= record["train_step"]:
            kept.pop()
        kept.append(record)
    return kept


def current_rate(records: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """Returns the current rate of a role, per second; None if its newest record has no such rate.

    The rate is 0 if the newest record is older than 30 s and than twice the interval of the last two records
    (long calls of the training graph delay records): the role is blocked or has ended.

    Args:
      records: of the role, oldest first; only the last two are used.
      key: of the rate.
    """
    if not records or records[-1].get(key) is None:
        return None
    newest = records[-1]
    apart_s = newest["time"] - records[-2]["time"] if len(records) > 1 else 0.0
    fresh = time.time() - newest["time"] <= max(_FRESH_S, 2 * apart_s)
    return float(newest[key]) if fresh else 0.0


def time_left_s(learner: Sequence[Mapping[str, Any]], train_steps: int) -> float | None:
    """Returns the seconds until the last train step; None if unknown or if the learner does not train.

    It uses the median rate of the last minute, because the first record includes the tracing of the graph.

    Args:
      learner: the learner's records, oldest first.
      train_steps: number of train steps of the whole run.
    """
    if not current_rate(learner, "train_steps_per_s"):
        return None
    since = learner[-1]["time"] - _STEADY_S
    rate = statistics.median(record["train_steps_per_s"] for record in learner if record["time"] >= since)
    return float((train_steps - learner[-1]["train_step"]) / rate) if rate else None


def _plain(value: Any) -> Any:
    """Replaces NaN and infinity, which JSON lacks, by None."""
    if isinstance(value, (list, tuple)):
        return [_plain(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
