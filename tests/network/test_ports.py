"""Ports in use are detected, with both versions of IP."""

import errno
import socket

import pytest

from actorlearner.errors import RunError
from actorlearner.network.ports import check_port

IPV4, IPV6 = socket.AF_INET, socket.AF_INET6


def listener(family: socket.AddressFamily, address: str, port: int = 0) -> socket.socket:
    """A server that would share its port, as Reverb's does."""
    server = socket.socket(family, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == IPV6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        server.bind((address, port))
    except OSError:
        server.close()
        raise
    server.listen()
    return server


@pytest.mark.parametrize(
    ("family", "address", "named"),
    [
        (IPV4, "0.0.0.0", "IPv4"),
        (IPV4, "127.0.0.1", "IPv4"),
        (IPV6, "::", "IPv6"),
        (IPV6, "::1", "IPv6"),
    ],
)
def test_a_port_in_use(family: socket.AddressFamily, address: str, named: str) -> None:
    try:
        server = listener(family, address)
    except OSError as error:
        pytest.skip(f"{address} cannot be bound here: {error.strerror}")
    with server:
        port = server.getsockname()[1]
        with pytest.raises(RunError, match=f"port {port} cannot be listened on with {named}: Address"):
            check_port(port)
    check_port(port)


def test_leftovers_of_a_connection_do_not_matter() -> None:
    with listener(IPV4, "127.0.0.1") as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        connection, _ = server.accept()
        connection.close()  # Closed first at this end, which then waits on its port for a while.
        client.close()
    check_port(port)


@pytest.mark.parametrize("missing", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_a_system_without_ipv6(monkeypatch: pytest.MonkeyPatch, missing: int, free_port: int) -> None:
    class WithoutIpv6(socket.socket):
        def bind(self, address: tuple[str, int]) -> None:  # type: ignore[override]
            if self.family == IPV6:
                raise OSError(missing, "no IPv6")
            super().bind(address)

    monkeypatch.setattr(socket, "socket", WithoutIpv6)
    check_port(free_port)
