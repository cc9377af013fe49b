"""What befell a run beside its work: processes that started, died and ended, and what they warned of.

One JSON object a line, in the order in which they were written: `time` in Unix seconds, `role` (with its
index where there are several, or "local" for local mode itself), `event` and `text`.
"""

import json
import threading
import time
from pathlib import Path
from typing import Any

from actorlearner.records.disk import Appender
from actorlearner.records.json_lines import read_objects
from actorlearner.records.tail import Tail

RUN_BEGAN = "run began"
RUN_RESUMED = "run resumed"
RUN_ENDED = "run ended"
STARTED = "started"
WARNED = "warned"
DIED = "died"
FAILED = "failed"
ENDED = "ended"

TROUBLE = (WARNED, DIED, FAILED)
"""The events that people want to know of; the others say when it was."""


class EventLog:
    """Appends to the events of a run. Each process of a run has one, all of the same file."""

    def __init__(self, path: Path, role: str) -> None:
        """Touches nothing yet.

        Args:
          path: of the file.
          role: whose events these are, with its index where there are several.
        """
        self._file = Appender(path, "events")
        self._role = role
        self._lock = threading.RLock()  # Of a full disk is said what is an event itself.

    def record(self, event: str, text: str = "", role: str = "") -> None:
        """Appends an event; while the disk is full it waits in memory.

        Args:
          event: one of this module's.
          text: more about it, in a line.
          role: that it befell; empty for the one of this log.

        Raises:
          OSError: it cannot be written, and not because the disk is full.
        """
        line = {"time": round(time.time(), 3), "role": role or self._role, "event": event, "text": text}
        with self._lock:
            self._file.append((json.dumps(line) + "\n").encode())


def read_events(path: Path) -> list[dict[str, Any]]:
    """The events of a run, oldest first; none if there is no file. What is no event is left out."""
    objects = read_objects(path, Tail(path, from_start=True).lines())
    events = [each for each in objects if {"time", "role", "event", "text"} <= each.keys()]
    return sorted(events, key=lambda event: float(event["time"]))
