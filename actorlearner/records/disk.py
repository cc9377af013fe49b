"""Writing to a disk that may be full.

Nothing ends because of that. It is said once, and once more when it is over; what is small (metrics, curves)
waits in memory meanwhile, what is not is left out, and nothing is ever there by half.
"""

import collections
import errno
import io
import os
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
"""How long nothing must have failed before it is said to be over: others may be using up the last bytes."""

_KEPT_BYTES = 4 << 20
"""What an `Appender` keeps in memory; a role writes that in hours."""


def is_full(error: BaseException) -> bool:
    """Whether an error, of ours or of a library, is that of a full disk or of a quota."""
    return any(os.strerror(code) in str(error) for code in _FULL)


class Outage:
    """Whether something cannot be written, said once when that begins and once when it has ended.

    It is said in the role's log, and to local mode, for the log may be on the same disk.
    """

    def __init__(self, what: str, path: Path) -> None:
        """Nothing has failed yet.

        Args:
          what: cannot be written, in the plural.
          path: where it goes.
        """
        self._what = what
        self._path = path
        self._failed_at: float | None = None

    def failed(self, error: BaseException) -> None:
        """Says `error`, unless it was said and has not ended since."""
        first, self._failed_at = self._failed_at is None, time.monotonic()
        if first:  # Known before it is said, for what is said may be written to the same disk.
            why = "the disk is full" if is_full(error) else one_line(error)
            warn(f"{why}: the {self._what} are not written to {self._path} for now, and the run goes on")

    def recovered(self) -> None:
        """Says that it is over, if it was said to have begun and nothing failed for _CALM_S."""
        if self._failed_at is not None and time.monotonic() - self._failed_at >= _CALM_S:
            self._failed_at = None
            warn(f"the {self._what} are written to {self._path} again")


class Appender:
    """Appends whole pieces, lines or records, to a file that others may be reading.

    Those that a full disk keeps out are kept, the newest _KEPT_BYTES of them, and written before the next.
    """

    def __init__(self, path: Path, what: str) -> None:
        """Touches nothing yet.

        Args:
          path: of the file; its directory is made.
          what: the pieces are, in the plural.
        """
        self._path = path
        self._outage = Outage(what, path)
        self._waiting: collections.deque[bytes] = collections.deque()
        self._waiting_bytes = 0

    def append(self, piece: bytes) -> bool:
        """Appends a piece; returns whether it, and all before it, is in the file.

        Raises:
          OSError: it cannot be written, and not because the disk is full.
        """
        self._waiting.append(piece)
        self._waiting_bytes += len(piece)
        while self._waiting_bytes > _KEPT_BYTES and len(self._waiting) > 1:
            self._waiting_bytes -= len(self._waiting.popleft())
        return self.flush()

    def flush(self) -> bool:
        """Appends the pieces that wait; returns whether none does any more.

        Raises:
          OSError: as `append`.
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
    """Appends all of `data`, or raises and leaves the file as it was."""
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


class _LastingFile(io.FileIO):
    """A file whose writes fail neither because the disk is full nor because the terminal is gone.

    Where a full disk has left out bytes, it writes how many.
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
            if error.errno == errno.EIO:  # A terminal that has hung up: nobody reads it any more.
                return length
            if not is_full(error):
                raise
            self._missing += length
            return length


def lasting(descriptor: int) -> TextIO:
    """A line-buffered stream, on an open file descriptor, that drops what cannot be written.

    That is what a full disk has no room for, and all that goes to a terminal which has hung up.

    Python's own streams raise then: in whatever code prints, and once more at exit.
    """
    return io.TextIOWrapper(
        io.BufferedWriter(_LastingFile(descriptor, "w", closefd=False)),
        encoding=sys.stderr.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )


def make_output_last() -> None:
    """Makes standard output and standard error streams that are `lasting`."""
    sys.stdout.flush()
    sys.stderr.flush()
    sys.stdout, sys.stderr = lasting(1), lasting(2)
