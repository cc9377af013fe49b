"""A role's heartbeat: a small file that names the role's current work, rewritten as the role makes progress.

The thread that does the work writes it, between two steps: a thread of its own would go on when the work
hangs. A role that waits for another one also writes heartbeats, which name what it waits for.
"""

import dataclasses
import json
import os
import threading
import time
from pathlib import Path

INTERVAL_S = 2.0
"""Seconds between two writes."""

PATIENCE_S = 60.0
"""Seconds without a heartbeat after which a role counts as hanging, unless it announced a longer step."""

LONG_PATIENCE_S = 900.0
"""The same for steps that take long on a slow machine: tracing graphs, writing checkpoints and policies."""

_SLOW_S = PATIENCE_S / 6

_BYTES = 2048
_MAX_CHARACTERS = 200  # Of `doing`; they fit into the file in any encoding.


@dataclasses.dataclass(frozen=True)
class Heartbeat:
    """The contents of the file.

    Attributes:
      time: when it was written, in Unix seconds.
      ready: whether the role has started.
      doing: what the role does, as in "waiting for ..." or "train step 100".
      patience_s: seconds within which the next heartbeat is due.
      started: when the process started, in Unix seconds; None if unknown.
      restarts: how many processes of this role died in a row before this one: each was killed, crashed or
        lost with its machine, and left the file behind.
    """

    time: float
    ready: bool
    doing: str
    patience_s: float = PATIENCE_S
    started: float | None = None
    restarts: int = 0


class _Writer:
    """Overwrites one file, whose space is allocated at the start: a full disk must not end the role."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()  # The learner's main thread and its training thread both write.
        self._due = 0.0
        self._patience_s = 0.0
        self._started = time.time()
        self._restarts = _deaths(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b", buffering=0)
        self._write("starting", LONG_PATIENCE_S, ready=False)
        os.fsync(self._file.fileno())

    def beat(self, doing: str, count: int | None, patience_s: float) -> None:
        now = time.monotonic()
        if now < self._due and patience_s == self._patience_s:
            return
        text = doing[:_MAX_CHARACTERS] if count is None else f"{doing[:_MAX_CHARACTERS]} {count:,}"
        with self._lock:
            self._write(text, patience_s)
            self._due, self._patience_s = now + INTERVAL_S, patience_s

    def crash(self) -> None:
        with self._lock:
            self._write("crashed", 0.0, ready=False)

    def _write(self, doing: str, patience_s: float, *, ready: bool = True) -> None:
        heartbeat = Heartbeat(time.time(), ready, doing, patience_s, self._started, self._restarts)
        line = json.dumps(dataclasses.asdict(heartbeat), ensure_ascii=False).encode("utf-8", "replace")
        os.pwrite(self._file.fileno(), line.ljust(_BYTES - 1) + b"\n", 0)


_writer: _Writer | None = None


def begin(path: Path) -> None:
    """Starts this process's heartbeat; `beat` does nothing before.

    Raises:
      OSError: the file cannot be written.
    """
    global _writer
    _writer = _Writer(path)


def beat(doing: str, count: int | None = None, patience_s: float = PATIENCE_S) -> None:
    """Reports that the role makes progress. Cheap to call often; a no-op outside of a role's process.

    Args:
      doing: what the role does.
      count: a number to add to `doing`, such as the train step.
      patience_s: seconds within which the next call is due.

    Raises:
      OSError: the file cannot be written.
    """
    if _writer is not None:
        _writer.beat(doing, count, patience_s)


def patience_after(slowest_s: float | None) -> float:
    """Returns the patience for repeated steps, the slowest of which took `slowest_s`; None: not known yet."""
    return LONG_PATIENCE_S if slowest_s is None or slowest_s > _SLOW_S else PATIENCE_S


def end(*, crashed: bool = False) -> None:
    """Ends this process's heartbeat, and removes the file.

    If the role `crashed`, the file stays, so that the next process counts as a restart.
    """
    global _writer
    if _writer is not None and crashed:
        _writer.crash()
    elif _writer is not None:
        _writer.path.unlink(missing_ok=True)
    _writer = None


def read_heartbeat(path: Path) -> Heartbeat:
    """Reads a heartbeat file.

    Raises:
      OSError: the file cannot be read.
      ValueError: it holds no JSON.
      TypeError: it holds another object.
    """
    try:
        return Heartbeat(**json.loads(path.read_bytes()))
    except ValueError:  # It may have been in the middle of a write.
        return Heartbeat(**json.loads(path.read_bytes()))


def is_overdue(path: Path, since: float) -> bool:
    """Returns whether a role's next heartbeat is late; False if the role has no heartbeat.

    Args:
      path: the heartbeat's file.
      since: Unix seconds; if the heartbeat is older, its patience counts from this time.
    """
    try:
        heartbeat = read_heartbeat(path)
    except (OSError, ValueError, TypeError):
        return False
    return time.time() - max(heartbeat.time, since) > heartbeat.patience_s


def _deaths(path: Path) -> int:
    """Returns how many processes in a row have left the file behind."""
    try:
        return read_heartbeat(path).restarts + 1
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, TypeError):  # Left behind, but unreadable.
        return 1
