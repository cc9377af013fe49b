"""Ports in use are detected, with both versions of IP."""

import errno
import socket

import pytest

from actorlearner.errors import RunError
from actorlearner.network.ports import check_port

IPV4, IPV6 = socket.AF_INET, socket.AF_INET6


def listener(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
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
def test_a_port_in_use(family: socket.AddressFamily, address: str, named: str, free_port: int) -> None:
    try:
        server = listener(family, address, free_port)
    except OSError as error:
        pytest.skip(f"{address} cannot be bound here: {error.strerror}")
    refusal = f"port {free_port} cannot be listened on with {named}: Address"
    with server, pytest.raises(RunError, match=refusal):
        check_port(free_port)
    check_port(free_port)


def test_leftovers_of_a_connection_do_not_matter(free_port: int) -> None:
    with listener(IPV4, "127.0.0.1", free_port) as server:
        client = socket.create_connection(("127.0.0.1", free_port))
        connection, _ = server.accept()
        connection.close()  # Closed first at this end, which then waits on its port for a while.
        client.close()
    check_port(free_port)


@pytest.mark.parametrize("missing", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_a_system_without_ipv6(monkeypatch: pytest.MonkeyPatch, missing: int, free_port: int) -> None:
    class WithoutIpv6(socket.socket):
        def bind(self, address: tuple[str, int]) -> None:  # type: ignore[override]
            if self.family == IPV6:
                raise OSError(missing, "no IPv6")
            super().bind(address)

    monkeypatch.setattr(socket, "socket", WithoutIpv6)
    check_port(free_port)
