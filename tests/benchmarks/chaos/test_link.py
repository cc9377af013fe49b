"""Links between real sockets: data that passes, waits for the end of a cut, or is lost."""

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from benchmarks.chaos.link import Link
from tests.conftest import Eventually

TIMEOUT_S = 10.0
SHORT_S = 0.3
"""How long something that must not happen is given to happen."""


class Echo(socketserver.BaseRequestHandler):
    """Echoes all data, and sends a last message when the client has closed its side."""

    def handle(self) -> None:
        while data := self.request.recv(1 << 16):
            self.request.sendall(data)
        self.request.sendall(b"bye")


@pytest.fixture
def server() -> Iterator[socketserver.ThreadingTCPServer]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def link(server: socketserver.ThreadingTCPServer) -> Iterator[Link]:
    link = Link(server.server_address[1])
    yield link
    link.close()


def connect(link: Link) -> socket.socket:
    host, _, port = link.address.partition(":")
    return socket.create_connection((host, int(port)), TIMEOUT_S)


def read(end: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count and (block := end.recv(count - len(received))):
        received += block
    return received


def assert_nothing_comes(end: socket.socket) -> None:
    end.settimeout(SHORT_S)
    with pytest.raises(TimeoutError):
        end.recv(1)
    end.settimeout(TIMEOUT_S)


def test_bytes_pass_both_ways_on_several_connections(link: Link) -> None:
    large = bytes(range(256)) * 20_000  # More than the buffers of the sockets.
    with connect(link) as one, connect(link) as two:
        for end, data in ((one, b"one"), (two, b"two")):
            end.sendall(data)
            assert read(end, 3) == data
        sending = threading.Thread(target=one.sendall, args=(large,))
        sending.start()
        assert read(one, len(large)) == large
        sending.join()


def test_the_end_of_one_direction_is_passed_on(link: Link) -> None:
    with connect(link) as end:
        end.sendall(b"last")
        end.shutdown(socket.SHUT_WR)
        assert read(end, 100) == b"lastbye"


def test_what_is_sent_during_a_cut_arrives_after_it(link: Link) -> None:
    with connect(link) as old:
        old.sendall(b"a")
        assert read(old, 1) == b"a"
        link.cut()
        old.sendall(b"b")
        with connect(link) as new:
            new.sendall(b"c")
            assert_nothing_comes(old)
            assert_nothing_comes(new)
            link.heal()
            assert read(old, 1) == b"b"
            assert read(new, 1) == b"c"


def test_a_drop_ends_connections_and_takes_new_ones(link: Link) -> None:
    with connect(link) as old:
        old.sendall(b"a")
        assert read(old, 1) == b"a"
        link.cut()
        old.sendall(b"b")
        link.heal(drop=True)
        assert old.recv(1) == b""
        with connect(link) as new:
            new.sendall(b"c")
            assert read(new, 1) == b"c"


def test_a_client_of_a_server_that_is_away_is_turned_away(free_port: int) -> None:
    link = Link(free_port)
    with connect(link) as end:
        assert end.recv(1) == b""
    link.close()


@pytest.mark.parametrize("cut", [False, True])
def test_close_leaves_no_thread_and_no_connection(
    server: socketserver.ThreadingTCPServer, eventually: Eventually, cut: bool
) -> None:
    before = threading.active_count()
    link = Link(server.server_address[1])
    with connect(link) as end:
        end.sendall(b"a")
        assert read(end, 1) == b"a"
        if cut:
            link.cut()
            end.sendall(b"b")
            connect(link).close()
        link.close()
        eventually(lambda: threading.active_count() <= before, TIMEOUT_S)
        with pytest.raises(ConnectionRefusedError):
            connect(link)
