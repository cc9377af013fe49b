"""Mutual TLS around Reverb, which has none: a proxy before the server, a tunnel in each client.

The proxy accepts TLS on the server's port and connects to Reverb on the loopback interface. A tunnel listens
on a Unix socket in a folder that only this user can enter, and connects to the proxy by TLS. gRPC takes the
socket's name as an address. Both run on threads of the role's process.
"""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from actorlearner.config.addresses import split_address
from actorlearner.network.certificate import client_context, server_context
from actorlearner.network.ports import LOOPBACK

_log = logging.getLogger(__name__)

_HANDSHAKE_S = 20.0
_BUFFER_BYTES = 1 << 20
_RETRY_S = 1.0
_MAX_REFUSALS = 100
_NOT_LOCALHOST = "127.0.0.2"
"""The source address of the proxy's connections.

Reverb takes a client at 127.0.0.1 with the server's process id for the server's own process, and returns a
pointer to a table in memory. Behind the proxy, a client on another machine may have that id.
"""

_MAX_NAME = 80

_folders: list[tempfile.TemporaryDirectory[str]] = []
"""The folders of the tunnels' sockets; keeping the objects keeps the folders until Python ends."""

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def open_proxy(listener: socket.socket, port: int, certificate: Path) -> None:
    """Forwards connections of certificate holders to Reverb until the process ends; does not block.

    Args:
      listener: listens where clients connect.
      port: of Reverb, on the loopback interface; it need not listen yet.
      certificate: of the run.
    """
    proxy = _Proxy(port, server_context(certificate))
    _run_on_thread(_accept(listener, proxy.forward), "TLS proxy")


def open_tunnels(addresses: Sequence[str], certificate: Path) -> tuple[str, ...]:
    """Opens a tunnel to each HOST:PORT, until the process ends; returns their addresses for gRPC."""
    folder = tempfile.TemporaryDirectory(prefix="actorlearner-tls-", ignore_cleanup_errors=True)
    _folders.append(folder)
    # A short path through /proc: a Unix socket's path must fit into 107 bytes.
    short = f"/proc/self/fd/{os.open(folder.name, os.O_PATH)}"
    context = client_context(certificate)
    tunnels = []
    for i, address in enumerate(addresses):
        # The socket is named after the server, because messages contain its path.
        path = f"{short}/{address if len(address) <= _MAX_NAME else f'server-{i}'}"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen()
        tunnel = _Tunnel(address, context)
        _run_on_thread(_accept(listener, tunnel.forward), f"TLS to {address}")
        tunnels.append(f"unix:{path}")
    return tuple(tunnels)


def _run_on_thread(work: Coroutine[Any, Any, None], name: str) -> None:
    threading.Thread(target=asyncio.run, args=(work,), name=name, daemon=True).start()


class _Proxy:
    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._port = port
        self._context = context
        self._refusals: set[tuple[str, str]] = set()

    async def forward(self, connection: socket.socket) -> None:
        peer = "a client that has gone"
        try:
            peer = connection.getpeername()[0].removeprefix("::ffff:")
            outside = await _accepted(connection, self._context)
        except (OSError, TimeoutError) as error:
            self._log_refusal(peer, error)
            return
        try:
            inside = await asyncio.open_connection(
                LOOPBACK, self._port, limit=_BUFFER_BYTES, local_addr=(_NOT_LOCALHOST, 0)
            )
        except OSError:  # Reverb does not listen yet; the client tries again.
            outside[1].close()
            return
        with contextlib.suppress(OSError):  # One end has gone, as a client may at any time.
            await _copy_both(outside, inside)

    def _log_refusal(self, peer: str, error: Exception) -> None:
        """Logs the first refusal of each address and reason: a scan of ports must not fill the disk."""
        refusal = peer, getattr(error, "reason", None) or str(error) or type(error).__name__
        if refusal not in self._refusals and len(self._refusals) < _MAX_REFUSALS:
            self._refusals.add(refusal)
            _log.warning("refused a connection from %s, without the run's certificate: %s", *refusal)


class _Tunnel:
    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        self._address = address
        self._context = context
        self._last_warning = ""

    async def forward(self, connection: socket.socket) -> None:
        inside = await _accepted(connection, None)
        host, port = split_address(self._address)
        try:
            outside = await asyncio.wait_for(
                asyncio.open_connection(host, port, limit=_BUFFER_BYTES, ssl=self._context), _HANDSHAKE_S
            )
            await _copy_both(inside, outside)
        except ssl.SSLError as error:
            self._warn(f"TLS with {self._address} fails, is --tls the file of its run? {error.reason}")
        except (OSError, TimeoutError):  # The server is away: gRPC tries again, and the role logs it.
            pass
        finally:
            inside[1].close()

    def _warn(self, line: str) -> None:
        """Logs a warning, unless it repeats the last one."""
        if line != self._last_warning:
            self._last_warning = line
            _log.warning("%s", line)


async def _accept(listener: socket.socket, handle: Any) -> None:
    """Handles each connection as a task of its own, for ever."""
    listener.setblocking(False)
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError as error:  # For example too many open files, until other connections end.
            _log.warning("a connection cannot be accepted: %s", error.strerror)
            await asyncio.sleep(_RETRY_S)
            continue
        task = loop.create_task(handle(connection))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _accepted(connection: socket.socket, context: ssl.SSLContext | None) -> _Streams:
    """Returns the streams of a connection that was accepted, after the handshake if there is a context."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_BUFFER_BYTES, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    timeout_s = None if context is None else _HANDSHAKE_S
    try:
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, connection, ssl=context, ssl_handshake_timeout=timeout_s
        )
    except BaseException:
        connection.close()
        raise
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _copy_both(one: _Streams, other: _Streams) -> None:
    """Copies in both directions until one end closes, then closes both.

    Raises:
      OSError: one end broke; also an ssl.SSLError.
    """
    copies = [asyncio.ensure_future(_copy(*ends)) for ends in ((one[0], other[1]), (other[0], one[1]))]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for writer in (one[1], other[1]):
            writer.close()
        outcomes = await asyncio.gather(*copies, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_BUFFER_BYTES):
        writer.write(data)
        await writer.drain()
