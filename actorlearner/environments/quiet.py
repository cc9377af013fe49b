"""Suppresses the output of simulators and libraries."""

import contextlib
import ctypes
import fcntl
import os
import sys
from collections.abc import Iterator

_FIRST_FREE = 3  # Otherwise a copy could take the number of a closed standard stream, as in a daemon.


@contextlib.contextmanager
def quiet_output(log: str = os.devnull) -> Iterator[None]:
    """Context manager that discards standard output and standard error, or writes them to a file.

    It redirects the file descriptors and so covers C and C++. sys.stdout and sys.stderr stay the same
    objects, so that a logging handler created inside still works afterwards. It affects the whole process:
    only one thread at a time may use it.

    Args:
      log: the file to overwrite with the output.
    """
    _flush()
    saved = _copies(_descriptors())
    try:
        with open(log, "wb") as instead:
            for descriptor in saved:
                os.dup2(instead.fileno(), descriptor)
        yield
    finally:
        _flush()  # Buffered output must not reach the restored streams.
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
            os.close(copy)


def _descriptors() -> set[int]:
    """Returns 1, 2 and the descriptors of sys.stdout and sys.stderr, which may have been replaced."""
    descriptors = {1, 2}
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # None, in memory, or closed.
            descriptors.add(stream.fileno())
    return descriptors


def _copies(descriptors: set[int]) -> dict[int, int]:
    """Returns a copy of each open descriptor."""
    copies = {}
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            copies[descriptor] = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    return copies


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # None, full, or closed.
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # Buffers of C.
