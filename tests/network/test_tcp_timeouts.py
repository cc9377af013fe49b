"""Which sockets of a process get timeouts."""

import socket
import threading

import pytest

from actorlearner.network.tcp_timeouts import TIMEOUT_S, set_timeouts, start_tcp_timeouts
from tests.conftest import Eventually


def _is_limited(connection: socket.socket) -> bool:
    milliseconds = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert milliseconds in (0, 1_000 * TIMEOUT_S)
    keeps_alive = connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert bool(keeps_alive) == bool(milliseconds)
    return milliseconds > 0


def test_existing_new_and_accepted_connections_get_timeouts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as before:
            known = set_timeouts(set())
            assert _is_limited(before)
            with socket.create_connection(address) as after:
                assert not _is_limited(after)
                assert set_timeouts(known) > known
                assert _is_limited(after)
            # Both connections were made before the server's ends were accepted.
            for has_it_from_the_listener in (False, True):
                accepted, _ = server.accept()
                with accepted:
                    assert _is_limited(accepted) == has_it_from_the_listener
                    set_timeouts(set())
                    assert _is_limited(accepted)


def test_a_known_connection_is_left_alone() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
    ):
        known = set_timeouts(set())
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 0)
        set_timeouts(known)
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 0


@pytest.mark.parametrize(
    ("family", "kind"), [(socket.AF_UNIX, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)]
)
def test_other_sockets_are_left_alone(family: socket.AddressFamily, kind: socket.SocketKind) -> None:
    with socket.socket(family, kind) as other:
        set_timeouts(set())
        assert other.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0


def test_the_thread_finds_connections_by_itself(eventually: Eventually) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
    ):
        before = set(threading.enumerate())
        start_tcp_timeouts()
        eventually(lambda: _is_limited(one))
        assert len(set(threading.enumerate()) - before) == 1
