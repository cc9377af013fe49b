"""The TCP sockets of this process, also those of C++ libraries."""

import contextlib
import os
import socket
from collections.abc import Iterator


def tcp_sockets() -> Iterator[tuple[str, socket.socket]]:
    """Yields the name and a duplicate of each TCP socket; the duplicate is closed afterwards.

    A socket may be closed by its owner at any time: to use it may raise an OSError.
    """
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # Closed in the meantime.
            name = os.readlink(f"/proc/self/fd/{descriptor}")
            if not name.startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(descriptor))) as duplicate:
                internet = duplicate.family in (socket.AF_INET, socket.AF_INET6)
                if internet and duplicate.type == socket.SOCK_STREAM:
                    yield name, duplicate
