"""Hides a server's port from other machines, where the system refuses a private network.

Reverb listens on all interfaces and cannot be told otherwise. A socket filter, for which no privileges are
needed, makes the kernel drop what does not come from the loopback interface.
"""

import contextlib
import ctypes
import ipaddress
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

_SO_ATTACH_FILTER = 26
_POLL_S = 0.05

# Classic BPF, see the kernel's filter.rst. Offsets from _NETWORK on are in the IP header.
_NETWORK = 0xFFF00000
_LOAD_BYTE, _LOAD_WORD, _AND = 0x30, 0x20, 0x54
_IF_EQUAL, _RETURN = 0x15, 0x06
_ACCEPT, _DROP = 0xFFFFFFFF, 0

_FILTER = (
    (_LOAD_BYTE, 0, 0, _NETWORK),
    (_AND, 0, 0, 0xF0),
    (_IF_EQUAL, 0, 3, 0x40),  # IPv4: the source is 127.0.0.0/8.
    (_LOAD_WORD, 0, 0, _NETWORK + 12),
    (_AND, 0, 0, 0xFF000000),
    (_IF_EQUAL, 8, 9, 0x7F000000),
    (_LOAD_WORD, 0, 0, _NETWORK + 8),  # IPv6: the source is ::1.
    (_IF_EQUAL, 0, 7, 0),
    (_LOAD_WORD, 0, 0, _NETWORK + 12),
    (_IF_EQUAL, 0, 5, 0),
    (_LOAD_WORD, 0, 0, _NETWORK + 16),
    (_IF_EQUAL, 0, 3, 0),
    (_LOAD_WORD, 0, 0, _NETWORK + 20),
    (_IF_EQUAL, 0, 1, 1),
    (_RETURN, 0, 0, _ACCEPT),
    (_RETURN, 0, 0, _DROP),
)


def close_to_other_machines(port: int) -> None:
    """Makes a port that this process will listen on refuse other machines; does not block.

    A thread waits for the listening sockets. It also ends connections that were made before it saw them.
    """
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
                _attach(connection)
                found.add(name)
        if found and found == closed:  # gRPC opens several, one after the other.
            return
        closed = found


def _attach(listener: socket.socket) -> None:
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in _FILTER))
    # struct sock_fprog: the number of instructions, and where they are.
    argument = struct.pack("HP", len(_FILTER), ctypes.addressof(program))
    listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, argument)


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
