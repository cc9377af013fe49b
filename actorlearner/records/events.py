"""The event log of a run: starts, ends, crashes and warnings of its processes.

One JSON object per line: `time` in Unix seconds, `role` (with its index if there are several processes, or
"local" for local mode itself), `event` and `text`.
"""

import json
import threading
import time
from pathlib import Path
from typing import Any

from actorlearner.records.disk import Appender
from actorlearner.records.lines import Tail, read_objects

RUN_BEGAN = "run began"
RUN_RESUMED = "run resumed"
RUN_ENDED = "run ended"
STARTED = "started"
WARNED = "warned"
DIED = "died"
FAILED = "failed"
ENDED = "ended"

INCIDENTS = (WARNED, DIED, FAILED)
"""The events that need attention."""


class EventLog:
    """Appends to a run's event log. All processes of a run append to the same file."""

    def __init__(self, path: Path, role: str) -> None:
        """Opens nothing yet.

        Args:
          path: of the file.
          role: the default role of events, with its index if there are several processes.
        """
        self._file = Appender(path, "events")
        self._role = role
        self._lock = threading.RLock()  # The warning of a full disk is recorded as an event itself.

    def record(self, event: str, text: str = "", role: str = "") -> None:
        """Appends an event, which stays in memory while the disk is full.

        Args:
          event: one of this module's constants.
          text: details in one line.
          role: the role concerned; by default the log's.

        Raises:
          OSError: writing failed for another reason than a full disk.
        """
        line = {"time": round(time.time(), 3), "role": role or self._role, "event": event, "text": text}
        with self._lock:
            self._file.append((json.dumps(line) + "\n").encode())


def read_events(path: Path) -> list[dict[str, Any]]:
    """Returns the events of a run, oldest first, without unreadable ones; empty if there is no file."""
    objects = read_objects(path, Tail(path, from_start=True).lines())
    events = [each for each in objects if {"time", "role", "event", "text"} <= each.keys()]
    return sorted(events, key=lambda event: float(event["time"]))
