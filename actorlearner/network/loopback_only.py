"""Hides a server's port from other machines, where the system refuses a private network.

Reverb listens on all interfaces and has no setting for that. A listening socket that is bound to the loopback
interface afterwards gets no connections from others. Since Linux 5.7 that needs no privileges; to attach a
socket filter may need some.
"""

import contextlib
import ipaddress
import os
import socket
import threading
import time
from collections.abc import Iterator

from actorlearner.errors import RunError

_INTERFACE = b"lo"
_POLL_S = 0.05


def close_to_other_machines(port: int) -> None:
    """Makes a port that this process will listen on refuse other machines; does not block.

    A thread waits for the listening sockets. It also ends connections that were made before it saw them.

    Raises:
      RunError: the system does not allow it.
    """
    try:
        with socket.socket() as probe:
            _bind_to_loopback(probe)
    except OSError as error:
        raise RunError(
            f"the replay server's own port cannot be hidden from other machines: {error.strerror}; allowed "
            "with --tls: a system with private networks, or Linux 5.7 or newer"
        ) from error
    threading.Thread(target=_close, args=(port,), name="loopback only", daemon=True).start()


def _close(port: int) -> None:
    closed: set[str] = set()
    while True:
        time.sleep(_POLL_S)
        found: set[str] = set()
        for name, connection in _sockets(port):
            if not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                _end_if_from_elsewhere(connection)
            else:
                if name not in closed:  # To bind it again may need privileges.
                    _bind_to_loopback(connection)
                found.add(name)
        if found and found == closed:  # gRPC opens several, one after the other.
            return
        closed = found


def _bind_to_loopback(listener: socket.socket) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, _INTERFACE)


def _end_if_from_elsewhere(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # It has ended by itself.
        peer = ipaddress.ip_address(connection.getpeername()[0])
        if not (getattr(peer, "ipv4_mapped", None) or peer).is_loopback:
            connection.shutdown(socket.SHUT_RDWR)


def _sockets(port: int) -> Iterator[tuple[str, socket.socket]]:
    """Yields the name and a duplicate of each TCP socket of this process that has this port."""
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # Closed in the meantime.
            name = os.readlink(f"/proc/self/fd/{descriptor}")
            if not name.startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(descriptor))) as duplicate:
                internet = duplicate.family in (socket.AF_INET, socket.AF_INET6)
                if internet and duplicate.type == socket.SOCK_STREAM and duplicate.getsockname()[1] == port:
                    yield name, duplicate
