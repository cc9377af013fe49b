"""Metrics files: one JSON object a line, with `time` in Unix seconds."""

import json
import math
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from actorlearner.records.disk import Appender
from actorlearner.records.json_lines import read_objects
from actorlearner.records.tail import Tail

METRICS_INTERVAL_S = 2.0
"""Seconds between two records of a role."""

_FRESH_S = 30.0
"""A record's rates are those of now for at least so long."""

_STEADY_S = 60.0
"""A forecast goes by the rates of so long: those of single records jump."""

_RECENT = int(_STEADY_S / METRICS_INTERVAL_S) + 1

_NEWEST_BYTES = 128 * 1024


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity; a reader finds null in their place."""
    if isinstance(value, (list, tuple)):
        return [_plain(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_records(path: Path) -> list[dict[str, Any]]:
    """The whole records of a metrics file, oldest first; none if there is no file."""
    return read_objects(path, Tail(path, from_start=True).lines())


Records = Mapping[str, Mapping[str, Any]]
"""The newest record of each of some metrics files, by the file's name without its suffix."""

_written: dict[str, Mapping[str, Any]] = {}


def written_records() -> Records:
    """The newest record of each metrics file that this process writes; any thread may ask."""
    return _written.copy()


def present_rate(records: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """A rate of a role's newest record, a second; None if it has none.

    0 if that is old: a role that waits in the middle of something, or has ended, writes no other. One whose
    records are far apart, as with long calls of the training graph, has twice that time.

    Args:
      records: of the role, oldest first; the last two count.
      key: of the rate.
    """
    if not records or records[-1].get(key) is None:
        return None
    newest = records[-1]
    apart_s = newest["time"] - records[-2]["time"] if len(records) > 1 else 0.0
    fresh = time.time() - newest["time"] <= max(_FRESH_S, 2 * apart_s)
    return float(newest[key]) if fresh else 0.0


def time_left_s(learner: Sequence[Mapping[str, Any]], train_steps: int) -> float | None:
    """Seconds until the last train step; None if nothing tells, or the learner trains no longer.

    By the median rate of the last minute: the first record has the time that optimises the graph in its own.

    Args:
      learner: its records, oldest first.
      train_steps: of the whole run.
    """
    if not present_rate(learner, "train_steps_per_s"):
        return None
    since = learner[-1]["time"] - _STEADY_S
    rate = statistics.median(record["train_steps_per_s"] for record in learner if record["time"] >= since)
    return float((train_steps - learner[-1]["train_step"]) / rate) if rate else None


def newest_of_each(directory: Path) -> Records:
    """The newest whole record of each metrics file in a directory."""
    found = {path.stem: newest_records(path) for path in directory.glob("*.jsonl")}
    return {name: records[-1] for name, records in found.items() if records}


def newest_records(path: Path) -> list[dict[str, Any]]:
    """The last whole records of a metrics file, some minutes of them, oldest first; none without a file."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - _NEWEST_BYTES))
        whole, _, _ = file.read().rpartition(b"\n")
    lines = whole.decode(errors="replace").splitlines()
    return read_objects(path, lines[1:] if length > _NEWEST_BYTES else lines)


class MetricsTail:
    """Follows a metrics file that another process appends to.

    Attributes:
      first: the first record; empty before there is one.
      recent: the last ones, a minute of them or more, oldest first.
    """

    def __init__(self, path: Path) -> None:
        """The file need not exist yet."""
        self._path = path
        self._tail = Tail(path, from_start=True)
        self.first: dict[str, Any] = {}
        self.recent: list[dict[str, Any]] = []

    @property
    def newest(self) -> dict[str, Any]:
        """The last record; empty before there is one."""
        return self.recent[-1] if self.recent else {}

    def read(self) -> list[dict[str, Any]]:
        """Returns the whole records that were appended since the last call."""
        records = read_objects(self._path, self._tail.lines())
        if records:
            self.first = self.first or records[0]
            self.recent = [*self.recent, *records][-_RECENT:]
        return records


class MetricsWriter:
    """Appends records to a metrics file; each is whole and on disk when `write` returns, if there is room."""

    def __init__(self, path: Path) -> None:
        """Begins after the file's last whole record."""
        if path.exists():
            content = path.read_bytes()
            os.truncate(path, content.rfind(b"\n") + 1)  # A writer that was killed may have left half a line.
        self._file = Appender(path, "metrics")
        self._name = path.stem

    def write(self, record: dict[str, Any]) -> bool:
        """Appends `record`, with the time put first.

        Returns:
          Whether it is in the file. It is not while the disk is full, and then follows later.
        """
        line = {"time": round(time.time(), 3)} | {key: _plain(value) for key, value in record.items()}
        _written[self._name] = line
        return self._file.append((json.dumps(line) + "\n").encode())

    def flush(self) -> bool:
        """Appends the records that a full disk has kept out; returns whether all are in the file."""
        return self._file.flush()


class Rate:
    """How often something happens a second, between two looks at its counter."""

    def __init__(self, count: int) -> None:
        """Starts at `count`."""
        self._count = count
        self._time = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether METRICS_INTERVAL_S have passed since the last `update`."""
        return time.monotonic() - self._time >= METRICS_INTERVAL_S

    def update(self, count: int) -> float:
        """Returns the events a second since the last update."""
        now = time.monotonic()
        rate = (count - self._count) / max(now - self._time, 1e-9)
        self._count, self._time = count, now
        return rate
