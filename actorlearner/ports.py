"""TCP ports of this machine."""

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on at the moment.

    Raises:
      OSError: there is none, or no loopback interface.
    """
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
