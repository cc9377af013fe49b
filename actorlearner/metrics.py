"""Metrics files: one JSON object a line, with `time` in Unix seconds."""

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actorlearner.disk import Appender

METRICS_INTERVAL_S = 2.0
"""Seconds between two records of a role."""


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity; a reader finds null in their place."""
    if isinstance(value, (list, tuple)):
        return [_plain(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_records(path: Path) -> list[dict[str, Any]]:
    """The whole records of a metrics file, oldest first; none if there is no file."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


Records = Mapping[str, Mapping[str, Any]]
"""The newest record of each of some metrics files, by the file's name without its suffix."""

_TAIL_BYTES = 1 << 16
_written: dict[str, Mapping[str, Any]] = {}


def written_records() -> Records:
    """The newest record of each metrics file that this process writes; any thread may ask."""
    return _written.copy()


def newest_records(directory: Path) -> Records:
    """The newest whole record of each metrics file in a directory."""
    newest = {}
    for path in directory.glob("*.jsonl"):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]
        if lines:
            newest[path.stem] = json.loads(lines[-1])
    return newest


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

    def __init__(self, count: int = 0) -> None:
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
