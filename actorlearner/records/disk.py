"""Writing to a disk that may be full.

A full disk never ends a role. A warning is logged when it begins and when it is over. Small data (metrics,
curves) is kept in memory until there is room, large data is dropped, and nothing is written partially.
"""

import collections
import errno
import io
import os
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from actorlearner.errors import one_line
from actorlearner.records.notify import warn

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_FULL = (errno.ENOSPC, errno.EDQUOT)

_CALM_S = 5.0
"""Seconds without a failure after which an outage is over: other processes may use up the last bytes."""

_KEPT_BYTES = 4 << 20
"""Maximum size of the pieces that an `Appender` keeps in memory; a role writes as much in hours."""


def is_full(error: BaseException) -> bool:
    """Whether an error, also one of a library, reports a full disk or an exceeded quota."""
    return any(os.strerror(code) in str(error) for code in _FULL)


class Outage:
    """Warns once when something cannot be written, and once when it can be written again.

    Local mode receives the warnings too, because the role's log may be on the same disk.
    """

    def __init__(self, what: str, path: Path) -> None:
        """Starts without a failure.

        Args:
          what: plural name of the data, for the warnings.
          path: the file or directory to which it is written.
        """
        self._what = what
        self._path = path
        self._failed_at: float | None = None

    def failed(self, error: BaseException) -> None:
        """Warns of `error`, unless the outage was reported already."""
        first, self._failed_at = self._failed_at is None, time.monotonic()
        if first:  # Set before the warning, which may be written to the same disk.
            why = "the disk is full" if is_full(error) else one_line(error)
            warn(f"{why}: the {self._what} are not written to {self._path} for now, and the run continues")

    def recovered(self) -> None:
        """Warns that the outage is over, if there was one and nothing failed for _CALM_S."""
        if self._failed_at is not None and time.monotonic() - self._failed_at >= _CALM_S:
            self._failed_at = None
            warn(f"the {self._what} are written to {self._path} again")


class Appender:
    """Appends complete pieces (lines or records) to a file that others may be reading.

    While the disk is full, the newest _KEPT_BYTES of pieces stay in memory and are written later.
    """

    def __init__(self, path: Path, what: str) -> None:
        """Opens nothing; the first `append` creates the file and its directory.

        Args:
          path: of the file.
          what: plural name of the pieces, for warnings.
        """
        self._path = path
        self._outage = Outage(what, path)
        self._waiting: collections.deque[bytes] = collections.deque()
        self._waiting_bytes = 0

    def append(self, piece: bytes) -> bool:
        """Appends a piece; returns whether this and all earlier pieces are in the file.

        Raises:
          OSError: writing failed for another reason than a full disk.
        """
        self._waiting.append(piece)
        self._waiting_bytes += len(piece)
        while self._waiting_bytes > _KEPT_BYTES and len(self._waiting) > 1:
            self._waiting_bytes -= len(self._waiting.popleft())
        return self.flush()

    def flush(self) -> bool:
        """Appends the pieces kept in memory; returns whether all are in the file.

        Raises:
          OSError: writing failed for another reason than a full disk.
        """
        if self._waiting:
            try:
                _append(self._path, b"".join(self._waiting))
            except OSError as error:
                if not is_full(error):
                    raise
                self._outage.failed(error)
                return False
            self._waiting.clear()
            self._waiting_bytes = 0
            self._outage.recovered()
        return True


def _append(path: Path, data: bytes) -> None:
    """Appends all of `data`, or raises and leaves the file unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        written = 0
        try:
            while written < len(data):
                written += os.write(descriptor, data[written:])
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes a file (text in UTF-8) completely or not at all, even if the machine crashes."""
    # Not named after the process: two threads, or processes in two containers, may write at once.
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class _RobustFile(io.FileIO):
    """A file that drops output when the disk is full or its reader is gone.

    After a full disk it writes how many bytes are missing.
    """

    _missing = 0

    def write(self, data: "ReadableBuffer", /) -> int:
        length = len(memoryview(data).cast("B"))
        try:
            if self._missing:
                super().write(f"\n[{self._missing} bytes are missing: the disk was full]\n".encode())
                self._missing = 0
            return super().write(data)
        except OSError as error:
            # The terminal has hung up, or nobody reads the pipe: Ctrl-C ends the tee of `... | tee log`, too.
            if error.errno in (errno.EIO, errno.EPIPE):
                return length
            if not is_full(error):
                raise
            self._missing += length
            return length


def robust_stream(descriptor: int) -> TextIO:
    """Returns a line-buffered stream on `descriptor` that survives a full disk and a lost reader.

    It drops such output. Python's own streams raise instead, in whatever code prints, and again at exit.
    """
    return io.TextIOWrapper(
        io.BufferedWriter(_RobustFile(descriptor, "w", closefd=False)),
        encoding=sys.stderr.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


def make_output_robust() -> None:
    """Replaces standard output and standard error by streams that survive a full disk."""
    sys.stdout.flush()
    sys.stderr.flush()
    sys.stdout, sys.stderr = robust_stream(1), robust_stream(2)
