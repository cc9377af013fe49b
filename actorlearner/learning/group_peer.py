"""A connection between two learners of a group: messages in JSON, one a line."""

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
      index: of that learner; -1 before it has said so.
      left: whether it has ended as it should.
      heard: when anything came from it last, in monotonic seconds.
    """

    def __init__(self, connection: socket.socket, index: int = -1) -> None:
        """Takes over a connection, which it makes one that does not block."""
        connection.setblocking(False)
        self.connection = connection
        self.index = index
        self.left = False
        self.heard = time.monotonic()
        self._unread = b""
        self._lock = threading.Lock()  # The role's thread says other things than the one that watches.

    def send(self, message: Message) -> None:
        """Sends a line; one that does not fit the socket's buffer, or finds nobody, is for a lost learner."""
        line = json.dumps(message).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):  # The next `receive`, or the silence, tells.
            self.connection.sendall(line)

    def receive(self) -> list[Message]:
        """What has come since the last call. Does not block.

        Raises:
          ConnectionError: the connection is closed, or what comes is not from a learner.
        """
        try:
            received = self.connection.recv(_LONGEST_LINE)
        except BlockingIOError:
            return []
        except OSError:  # As a reset, where the other end had not read everything when it ended.
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
    """Closes connections once the other ends have taken what was sent; a plain close might take it back.

    Blocks for up to _FAREWELL_S, while the other ends stay open.
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
