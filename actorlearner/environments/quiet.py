"""Keeps what simulators and libraries print out of the user's terminal."""

import contextlib
import ctypes
import fcntl
import os
import sys
from collections.abc import Iterator

_FIRST_FREE = 3  # Copies must not take the place of standard streams that are closed, as in a daemon.


@contextlib.contextmanager
def quiet_output(log: str = os.devnull) -> Iterator[None]:
    """Discards everything that is written to standard output and standard error meanwhile, or logs it.

    It acts on the file descriptors, so that it holds for C and C++ as well, and leaves sys.stdout and
    sys.stderr alone: a logging handler made meanwhile must still work afterwards. It holds for the
    whole process; do not let two threads use it at once.

    Args:
      log: the file that gets it instead, anew.
    """
    _flush()
    saved = _copies(_descriptors())
    try:
        with open(log, "wb") as instead:
            for descriptor in saved:
                os.dup2(instead.fileno(), descriptor)
        yield
    finally:
        _flush()  # What is still buffered belongs there, too.
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
            os.close(copy)


def _descriptors() -> set[int]:
    """Those of the process, and those that Python's streams write to if somebody replaced these."""
    descriptors = {1, 2}
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # None, in memory, or closed.
            descriptors.add(stream.fileno())
    return descriptors


def _copies(descriptors: set[int]) -> dict[int, int]:
    """Copies of the descriptors that are open."""
    copies = {}
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            copies[descriptor] = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    return copies


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # None, full, or closed.
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # C has buffers of its own.
