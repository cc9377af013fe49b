"""TCP ports of this machine."""

import errno
import socket

from actorlearner.errors import RunError

LOOPBACK = "127.0.0.1"

_ALL_INTERFACES = {"IPv4": (socket.AF_INET, "0.0.0.0"), "IPv6": (socket.AF_INET6, "::")}

_NO_SUCH_IP = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
"""The errors of a version of IP that the system lacks or that is switched off."""


def free_port() -> int:
    """Returns a port that nobody listens on at the moment.

    Raises:
      OSError: there is none, or no loopback interface.
    """
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def check_port(port: int) -> None:
    """Checks that a port is free on all interfaces, with IPv4 and IPv6.

    Otherwise Reverb would share the port with another server, and each would receive some of the calls.

    Raises:
      RunError: the port is in use, or may not be used.
    """
    for name, (family, address) in _ALL_INTERFACES.items():
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                # Leftovers of ended connections do not matter.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:  # Or it would take the port of IPv4 as well.
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
        except OSError as error:
            if error.errno not in _NO_SUCH_IP:
                raise RunError(f"port {port} cannot be listened on with {name}: {error.strerror}") from error


def listen(port: int) -> socket.socket:
    """Listens on all interfaces, with IPv4 and IPv6.

    Raises:
      RunError: the port is in use, or may not be used.
    """
    check_port(port)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=512, dualstack_ipv6=True)
    return socket.create_server(("", port), backlog=512)
