"""A role's sign of life: a small file with what it does, written again while it gets on with that.

It is written where the role's work is done, between two steps of that; a thread of its own would say that a
role is alive whose work hangs. A role that has to wait for another one says so, and goes on giving signs of
life.
"""

import dataclasses
import json
import os
import threading
import time
from pathlib import Path

INTERVAL_S = 2.0
"""Seconds between two signs of life that a role writes down."""

PATIENCE_S = 60.0
"""Seconds after which a role that gives no sign of life hangs, unless it said that it will take longer."""

LONG_PATIENCE_S = 900.0
"""The same for what takes long on a slow machine: tracing graphs, and writing checkpoints and policies."""


@dataclasses.dataclass(frozen=True)
class Heartbeat:
    """A sign of life.

    Attributes:
      time: when it was given, in Unix seconds.
      ready: whether the role has started.
      doing: what it does, as in "waiting for ..." or "train step 100".
      patience_s: seconds within which the next sign has to come.
      started: when the process was, in Unix seconds; None if it did not say.
      restarts: how many processes of the role before this one have ended without taking their sign of life
        away, one after the other: killed, crashed, or with their machine.
    """

    time: float
    ready: bool
    doing: str
    patience_s: float = PATIENCE_S
    started: float | None = None
    restarts: int = 0


_BYTES = 2048
_LONGEST = 200  # Characters of what it does; they fit, whatever they are.


class _Beating:
    """The signs of life of this process.

    They are written over each other, in a file that has its room from the start: a role lives on when the
    disk is full.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()  # The learner waits for data on another thread than it trains on.
        self._due = 0.0
        self._patience_s = 0.0
        self._started = time.time()
        self._restarts = _deaths(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b", buffering=0)
        self.write("starting", LONG_PATIENCE_S, ready=False)
        os.fsync(self._file.fileno())

    def beat(self, doing: str, count: int | None, patience_s: float) -> None:
        now = time.monotonic()
        if now < self._due and patience_s == self._patience_s:
            return
        text = doing[:_LONGEST] if count is None else f"{doing[:_LONGEST]} {count:,}"
        with self._lock:
            self.write(text, patience_s)
            self._due, self._patience_s = now + INTERVAL_S, patience_s

    def write(self, doing: str, patience_s: float, *, ready: bool = True) -> None:
        heartbeat = Heartbeat(time.time(), ready, doing, patience_s, self._started, self._restarts)
        line = json.dumps(dataclasses.asdict(heartbeat), ensure_ascii=False).encode("utf-8", "replace")
        os.pwrite(self._file.fileno(), line.ljust(_BYTES - 1) + b"\n", 0)

    def end(self) -> None:
        self._path.unlink(missing_ok=True)


def _deaths(path: Path) -> int:
    """How many processes in a row have left the file behind."""
    try:
        return read_heartbeat(path).restarts + 1
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, TypeError):  # It was left, but cannot be read.
        return 1


_beating: _Beating | None = None


def begin(path: Path) -> None:
    """Lets this process give its signs of life in the file `path`; says there that it is starting.

    Raises:
      OSError: the file cannot be written.
    """
    global _beating
    _beating = _Beating(path)


def beat(doing: str, count: int | None = None, patience_s: float = PATIENCE_S) -> None:
    """Says that the role gets on with its work. Cheap to call often; nothing happens outside of a role.

    Args:
      doing: what it does.
      count: how far it is with that.
      patience_s: seconds within which this will be called again.

    Raises:
      OSError: the file cannot be written.
    """
    if _beating is not None:
        _beating.beat(doing, count, patience_s)


def end() -> None:
    """Takes the sign of life away: the role has ended by itself."""
    global _beating
    if _beating is not None:
        _beating.end()
    _beating = None


def read_heartbeat(path: Path) -> Heartbeat:
    """The last sign of life in a file.

    Raises:
      OSError: the file cannot be read.
      ValueError: it holds none.
      TypeError: it holds another.
    """
    try:
        return Heartbeat(**json.loads(path.read_bytes()))
    except ValueError:  # Perhaps it was just being written.
        return Heartbeat(**json.loads(path.read_bytes()))
