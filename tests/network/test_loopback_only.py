"""A server's port is hidden from other machines, although the server listens on all interfaces."""

import socket
import threading

import pytest

from actorlearner.errors import RunError
from actorlearner.network import loopback_only
from actorlearner.network.loopback_only import close_to_other_machines
from tests.support.processes import wait_for

_TIMEOUT_S = 30.0


@pytest.fixture(name="address")
def _address() -> str:
    """An address of this machine on another interface: connections to it count as another machine's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            any_socket.connect(("192.0.2.1", 9))  # Sends nothing.
        except OSError:
            pytest.skip("this machine has no interface but the loopback")
        return str(any_socket.getsockname()[0])


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_only_the_loopback_interface_gets_through(address: str, family: int) -> None:
    with _server(family) as server:
        port = server.getsockname()[1]
        early = _connect(address, port)
        accepted, _ = server.accept()
        accepted.sendall(b"x")
        assert early.recv(1) == b"x"
        close_to_other_machines(port)
        assert early.recv(1) == b""  # The connection made before is ended.

        def is_refused() -> bool:
            try:
                _connect(address, port).close()
            except ConnectionRefusedError:
                return True
            return False

        wait_for(is_refused, "the port to be closed")
        for source in ("127.0.0.1", "127.0.0.2"):  # The proxy connects from the second one.
            with _connect("127.0.0.1", port, source) as connection:
                assert connection.getpeername() == ("127.0.0.1", port)


def test_without_privileges_each_listener_is_bound_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CAP_NET_RAW, Linux refuses to bind a socket a second time. The test does the same."""
    bind = loopback_only._bind_to_loopback
    failed = []

    def bind_once(listener: socket.socket) -> None:
        if listener.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0"):
            raise PermissionError
        bind(listener)

    monkeypatch.setattr(loopback_only, "_bind_to_loopback", bind_once)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = set(threading.enumerate())
    with _server(socket.AF_INET) as server:
        close_to_other_machines(server.getsockname()[1])
        for thread in set(threading.enumerate()) - before:
            thread.join(_TIMEOUT_S)
            assert not thread.is_alive()
        assert server.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0") == b"lo"
    assert not failed


def test_a_system_that_does_not_allow_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_only, "_INTERFACE", b"no-such-device")
    with pytest.raises(RunError, match="own port cannot be hidden from other machines: No such device"):
        close_to_other_machines(1)


def _server(family: int) -> socket.socket:
    if family == socket.AF_INET:
        return socket.create_server(("", 0))
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    return socket.create_server(("", 0), family=family, dualstack_ipv6=True)


def _connect(address: str, port: int, source: str = "") -> socket.socket:
    return socket.create_connection((address, port), _TIMEOUT_S, source_address=(source, 0))
