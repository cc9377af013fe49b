"""A connection between two learners of a group: JSON messages, one per line."""

import contextlib
import json
import logging
import signal
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any

from actorlearner.process.stop import Stop

_log = logging.getLogger(__name__)

_CLOSE_S = 2.0
_MAX_LINE = 1 << 16

Message = dict[str, Any]


def follow_stop(message: Message, stop: Stop) -> None:
    """Stops this learner if `message` reports that another one was stopped."""
    if "stop" in message and not stop.requested:
        _log.info("stopping, because %s was stopped", message["stop"])
        stop.request(signal.SIGTERM)


class Peer:
    """A connection to another learner.

    Attributes:
      connection: its socket.
      index: the index of that learner; -1 before it has sent it.
      left: whether it has ended normally.
      heard: the monotonic time, in seconds, of its last message.
    """

    def __init__(self, connection: socket.socket, index: int = -1) -> None:
        """Makes the connection non-blocking."""
        connection.setblocking(False)
        self.connection = connection
        self.index = index
        self.left = False
        self.heard = time.monotonic()
        self._unread = b""
        self._lock = threading.Lock()  # Both the role's thread and the watching thread send.

    def send(self, message: Message) -> None:
        """Sends a message. Failures are ignored: `receive` detects lost peers."""
        line = json.dumps(message).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):
            self.connection.sendall(line)

    def receive(self) -> list[Message]:
        """Returns the messages since the last call. Does not block.

        Raises:
          ConnectionError: the connection is closed, or the peer is no learner.
        """
        try:
            received = self.connection.recv(_MAX_LINE)
        except BlockingIOError:
            return []
        except OSError:  # For example a reset: the other end had not read everything when it ended.
            received = b""
        if not received:
            raise ConnectionError("its connection was closed")
        self.heard = time.monotonic()
        *lines, self._unread = (self._unread + received).split(b"\n")
        try:
            messages = [json.loads(line) for line in lines]
        except ValueError:
            messages = [None]
        if len(self._unread) > _MAX_LINE or not all(isinstance(message, dict) for message in messages):
            raise ConnectionError("it sent something else than the messages of a learner")
        return messages


def close_peers(peers: Iterable[Peer]) -> None:
    """Closes connections once the other ends have read everything; a plain close might discard data.

    Blocks for up to _CLOSE_S while the other ends stay open.
    """
    deadline = time.monotonic() + _CLOSE_S
    connections = [peer.connection for peer in peers]
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
    for connection in connections:
        with contextlib.suppress(OSError):
            while (left_s := deadline - time.monotonic()) > 0:
                connection.settimeout(left_s)
                if not connection.recv(_MAX_LINE):
                    break
        connection.close()
