"""Hides a server's port from other machines, where the system refuses a private network.

Reverb listens on all interfaces and has no setting for that. A listening socket that is bound to the loopback
interface afterwards gets no connections from others. Since Linux 5.7 that needs no privileges; to attach a
socket filter may need some.
"""

import contextlib
import ipaddress
import math
import socket
import threading
import time

from actorlearner.errors import RunError
from actorlearner.network.own_sockets import tcp_sockets

_INTERFACE = b"lo"
_POLL_S = 0.05
_SETTLED_S = 2.0
"""Seconds without a new listening socket after which no more are expected: gRPC opens several in a row."""


def close_to_other_machines(port: int) -> None:
    """Closes a port, which this process will listen on, to other machines; does not block.

    A thread waits for the listening sockets. It also ends connections from other machines that were
    made in the meantime.

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
    ends_at = math.inf
    while time.monotonic() < ends_at:
        time.sleep(_POLL_S)
        found: set[str] = set()
        for name, connection in tcp_sockets():
            if connection.getsockname()[1] != port:
                continue
            if not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                _end_if_from_elsewhere(connection)
            else:
                if name not in closed:  # To bind it again may need privileges.
                    _bind_to_loopback(connection)
                found.add(name)
        if found != closed:
            ends_at = time.monotonic() + _SETTLED_S
        closed = found


def _bind_to_loopback(listener: socket.socket) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, _INTERFACE)


def _end_if_from_elsewhere(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # It has ended by itself.
        peer = ipaddress.ip_address(connection.getpeername()[0])
        if not (getattr(peer, "ipv4_mapped", None) or peer).is_loopback:
            connection.shutdown(socket.SHUT_RDWR)
