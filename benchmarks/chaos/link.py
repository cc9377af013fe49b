"""A forwarder between a role and the replay server, which can cut the two off from each other."""

import contextlib
import socket
import threading
from collections.abc import Callable

_BLOCK = 1 << 16
_CONNECT_TIMEOUT_S = 5.0
_JOIN_TIMEOUT_S = 5.0


class Link:
    """Accepts TCP connections and forwards their bytes to another port of this machine, and back.

    While it is cut, nothing passes and nothing is closed: to both sides the other one seems very
    slow. Data sent meanwhile arrives at the end of the cut, or never, if the cut drops the connections.

    Attributes:
      address: HOST:PORT to connect to.
    """

    def __init__(self, port: int) -> None:
        """Listens at once; `port` is that of the server, which need not be there."""
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._whole = threading.Event()
        self._whole.set()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self) -> None:
        """Stops forwarding."""
        self._whole.clear()

    def heal(self, *, drop: bool = False) -> None:
        """Goes on forwarding; `drop` ends all connections first, as a router that forgot them would."""
        if drop:
            self._drop()
        self._whole.set()

    def close(self) -> None:
        """Ends everything; waits for its threads, for some seconds at most."""
        self._closed = True
        self._shut(self._listener)
        self._listener.close()
        self.heal(drop=True)
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(_JOIN_TIMEOUT_S)

    def _start(self, target: Callable[..., None], *arguments: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, name="link", daemon=True)
        with self._lock:
            self._threads = [other for other in self._threads if other.is_alive()] + [thread]
            thread.start()
        return thread

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # The listener was closed.
            self._start(self._connect, client)

    def _connect(self, client: socket.socket) -> None:
        self._whole.wait()
        try:
            server = socket.create_connection(("127.0.0.1", self._port), _CONNECT_TIMEOUT_S)
        except OSError:
            client.close()  # The server is away: the client tries again.
            return
        server.settimeout(None)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open |= {client, server}
        if self._closed:
            self._drop()
        back = self._start(self._pump, server, client)
        self._pump(client, server)
        back.join()
        with self._lock:
            self._open -= {client, server}
        client.close()
        server.close()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        """Forwards in one direction until the source ends, and passes that on, too."""
        with contextlib.suppress(OSError):  # Either end may be gone.
            while block := source.recv(_BLOCK):
                self._whole.wait()
                target.sendall(block)
            self._whole.wait()
            target.shutdown(socket.SHUT_WR)
            return
        self._shut(source)
        self._shut(target)

    def _drop(self) -> None:
        with self._lock:
            for end in self._open:
                self._shut(end)

    def _shut(self, end: socket.socket) -> None:
        """Wakes the thread that is blocked on a socket; closing it would not."""
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class Links:
    """The links of all roles to the replay server, created on the supervisor's request."""

    def __init__(self) -> None:
        """Starts without links."""
        self._links: dict[str, Link] = {}

    def route(self, role: str, port: int) -> str:
        """Creates the link of a role to the replay server; see Supervisor."""
        self._links[role] = Link(port)
        return self._links[role].address

    def of(self, role: str) -> Link:
        """Returns the link of a role."""
        return self._links[role]

    def close(self) -> None:
        """Closes all links."""
        for link in self._links.values():
            link.close()
