"""A network link with little bandwidth, between a role and the replay server."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

_BLOCK = 4096


class _Pace:
    """The time at which the next bytes may pass, shared by all connections of a link."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_at = time.monotonic()
        self._lock = threading.Lock()

    def wait(self, count: int) -> None:
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + count / self._bytes_per_s
            left = self._free_at - now
        time.sleep(left)  # That is what a link of this bandwidth takes.


@contextlib.contextmanager
def slow_link(port: int, bytes_per_s: float) -> Iterator[str]:
    """Yields the HOST:PORT of a link to a server on this machine; what the server sends is slow."""
    pace = _Pace(bytes_per_s)
    ends: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket, paced: bool) -> None:
        with contextlib.suppress(OSError):  # Either end may be gone.
            while block := source.recv(_BLOCK):
                if paced:
                    pace.wait(len(block))
                target.sendall(block)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with contextlib.suppress(OSError):  # The listener was closed.
            while True:
                client, _ = listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", port))
                except OSError:
                    client.close()  # The server is not there yet: the client tries again.
                    continue
                ends.extend((client, server))
                for ends_of_it in ((client, server, False), (server, client, True)):
                    threading.Thread(target=pump, args=ends_of_it, daemon=True).start()

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        for end in (listener, *ends):
            end.close()
