"""A connection between two learners of a group: JSON messages, one per line."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

_FAREWELL_S = 2.0
_LONGEST_LINE = 1 << 16

Message = dict[str, Any]


class Peer:
    """A connection to another learner.

    Attributes:
      connection: its socket.
      index: the index of that learner; -1 before it has sent it.
      left: whether it has ended normally.
      heard: the monotonic time, in seconds, of its last message.
    """

    def __init__(self, connection: socket.socket, index: int = -1) -> None:
        """Wraps a connection and makes it non-blocking."""
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
        with self._lock, contextlib.suppress(OSError):  # The next `receive`, or the silence, reports it.
            self.connection.sendall(line)

    def receive(self) -> list[Message]:
        """Returns the messages since the last call. Does not block.

        Raises:
          ConnectionError: the connection is closed, or the peer is no learner.
        """
        try:
            received = self.connection.recv(_LONGEST_LINE)
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
            raise ConnectionError("it does not speak as a learner does") from None
        if len(self._unread) > _LONGEST_LINE or not all(isinstance(message, dict) for message in messages):
            raise ConnectionError("it does not speak as a learner does")
        return messages

    def close(self) -> None:
        """Closes the connection at once."""
        self.connection.close()


def say_farewell(connections: Sequence[socket.socket]) -> None:
    """Closes connections once the other ends have read everything; a plain close might discard data.

    Blocks for up to _FAREWELL_S while the other ends stay open.
    """
    deadline = time.monotonic() + _FAREWELL_S
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
    for connection in connections:
        with contextlib.suppress(OSError):
            while (left_s := deadline - time.monotonic()) > 0:
                connection.settimeout(left_s)
                if not connection.recv(_LONGEST_LINE):
                    break
        connection.close()
