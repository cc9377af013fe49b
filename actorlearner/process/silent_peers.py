"""Gives up connections whose other end has fallen silent, as that of a machine does which is gone for good.

TCP sends what nobody confirms again for a quarter of an hour, and says nothing at all on a connection that
waits for the other side. So long would a role wait for a replay server that is long back, behind another
address or a firewall that has forgotten the connection. gRPC has settings for this, but Reverb does not let
one make them: so they are made on its sockets, by a thread that looks for new ones.
"""

import contextlib
import os
import socket
import threading
import time

SILENCE_S = 60
"""How long the other end may confirm nothing.

TCP itself gets over what is shorter. gRPC, which would have to connect anew, waits the longer before that the
more often it has failed.
"""

_PROBE_AFTER_S = 20
_PROBE_INTERVAL_S = 10
_LOOK_INTERVAL_S = 5.0

_INTERNET = (socket.AF_INET, socket.AF_INET6)
_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1_000 * SILENCE_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_AFTER_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_INTERVAL_S),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
)
"""Also of sockets that listen, which hand them on to their connections."""


def give_up_silent_peers() -> None:
    """Starts the thread; it ends with the process."""
    threading.Thread(target=_look_for_ever, name="silent peers", daemon=True).start()


def _look_for_ever() -> None:
    known: set[str] = set()
    while True:
        known = limit_silence(known)
        time.sleep(_LOOK_INTERVAL_S)


def limit_silence(known: set[str]) -> set[str]:
    """Makes each TCP connection of this process end after SILENCE_S without a sign of the other end.

    Args:
      known: what the last call has returned.

    Returns:
      The sockets of this process, which the next call leaves alone.
    """
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # Somebody has closed it since.
            name = os.readlink(f"/proc/self/fd/{descriptor}")
            if not name.startswith("socket:"):
                continue
            if name not in known:
                _limit(int(descriptor))
            found.add(name)
    return found


def _limit(descriptor: int) -> None:
    connection = socket.socket(fileno=descriptor)
    try:
        if connection.family in _INTERNET and connection.type == socket.SOCK_STREAM:
            for level, option, value in _OPTIONS:
                connection.setsockopt(level, option, value)
    finally:
        connection.detach()  # It stays its owner's, who closes it.
