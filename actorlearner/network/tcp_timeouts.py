"""Ends TCP connections whose other end is silent, as after a machine was lost.

TCP retransmits for a quarter of an hour, and never probes an idle connection. Reverb does not expose gRPC's
settings for this, so a thread finds the sockets of this process and sets TCP's own options.
"""

import contextlib
import socket
import threading
import time

from actorlearner.network.own_sockets import tcp_sockets

TIMEOUT_S = 60
"""Seconds without an acknowledgement after which a connection ends.

TCP bridges shorter interruptions. gRPC would have to connect again, with a longer delay after each failure.
"""

_POLL_INTERVAL_S = 5.0

_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1_000 * TIMEOUT_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
)
"""TCP_USER_TIMEOUT is in milliseconds, the others in seconds. Accepted connections inherit the options."""


def start_tcp_timeouts() -> None:
    """Starts the thread; it ends with the process."""

    def run() -> None:
        known: set[str] = set()
        while True:
            known = set_timeouts(known)
            time.sleep(_POLL_INTERVAL_S)

    threading.Thread(target=run, name="TCP timeouts", daemon=True).start()


def set_timeouts(known: set[str]) -> set[str]:
    """Makes every new TCP connection of this process end after TIMEOUT_S of silence.

    Skips the sockets `known`, which the last call returned; returns all TCP sockets of this process.
    """
    found = set()
    for name, connection in tcp_sockets():
        if name not in known:
            with contextlib.suppress(OSError):  # Closed in the meantime.
                for level, option, value in _OPTIONS:
                    connection.setsockopt(level, option, value)
        found.add(name)
    return found
