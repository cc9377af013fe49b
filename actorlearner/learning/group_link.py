"""What the learners of a group tell each other beside TensorFlow: who is there, who stops, who failed.

TensorFlow's collectives wait for a learner that does not come, and cannot tell which one that is. So the
chief listens on its address in TF_CONFIG until all learners have connected, and only then leaves the port to
TensorFlow. The connections stay: each end says every few seconds that it lives, and one that is closed or
silent tells that a learner is lost. Messages are JSON, one a line.
"""

import contextlib
import functools
import json
import logging
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from actorlearner.cluster import Cluster, learner_name
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.stop import Stop
from actorlearner.waiting import wait_until

_log = logging.getLogger(__name__)

GATHER_DEADLINE_S = 300.0
"""How long a learner waits for the others: they may be started in any order, on any machine."""

SILENCE_S = 20.0
"""Seconds without a word after which a learner is lost, whose connection nobody has closed."""

GRACE_S = 5.0
"""How long the role of a learner whose group has failed may take to end by itself."""

_ALIVE_INTERVAL_S = 2.0
_LOOK_INTERVAL_S = 0.2
_CONNECT_S = 2.0
_FAREWELL_S = 2.0
_LONGEST_LINE = 1 << 16

_AGAIN = "all learners of the group have to be started again, and go on from the chief's last checkpoint"

Message = dict[str, Any]


class _Peer:
    """A connection to another learner.

    Attributes:
      index: of that learner; -1 before it has said so.
      left: whether it has ended as it should.
    """

    def __init__(self, connection: socket.socket, index: int = -1) -> None:
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
        self.connection.close()


class GroupLink:
    """This learner's connections: the chief's to all others, and theirs to the chief.

    Attributes:
      lost: why the group cannot go on, in words; None while it can.
    """

    def __init__(self, cluster: Cluster, fingerprint: str, stop: Stop, fail: Callable[[str], object]) -> None:
        """Connects to nobody yet.

        Args:
          cluster: the group.
          fingerprint: of the configuration, which has to be that of all.
          stop: of this learner; requested when another one stops, and told to the others.
          fail: ends this process; called on a thread, with `lost`, if it has not ended by itself in GRACE_S.
        """
        self.lost: str | None = None
        self._cluster = cluster
        self._hello: Message = {"addresses": list(cluster.addresses), "fingerprint": fingerprint}
        self._stop = stop
        self._fail = fail
        self._peers: list[_Peer] = []
        self._stop_told = False
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="group", daemon=True)

    def gather(self) -> bool:
        """Waits for all others: the chief for their connections, they for its word.

        Returns:
          Whether they are there; False at a stop.

        Raises:
          ConfigurationError: the chief has another TF_CONFIG or another configuration.
          RunError: one did not come within GATHER_DEADLINE_S, or the chief's port is taken.
        """
        return self._gather_others() if self._cluster.is_chief else self._find_chief()

    def begin(self) -> None:
        """Begins to watch the others; the chief, whose TensorFlow listens by now, lets them go on."""
        self._broadcast({"go": True})
        self._thread.start()

    def loss(self, timeout_s: float) -> str | None:
        """Waits for `lost`; None if the group is still whole after `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self.lost is not None, timeout_s)
            return self.lost

    @property
    def others_have_left(self) -> bool:
        """Whether all that this learner is connected to have ended as they should."""
        return all(peer.left for peer in self._peers)

    def leave(self) -> None:
        """Tells the others that this learner's end is none that they have to mind."""
        self._broadcast({"left": True})

    def close(self, failure: str | None = None) -> None:
        """Ends the connections; blocks for up to _FAREWELL_S.

        Args:
          failure: what the others are told that this learner failed by; None if it did not.
        """
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        if failure is not None and self.lost is None:
            self._broadcast({"failed": f"{self._cluster.name} failed: {failure}"})
        else:
            self.leave()
        _say_farewell([peer.connection for peer in self._peers])
        self._peers = []

    def _broadcast(self, message: Message) -> None:
        for peer in self._peers:
            peer.send(message)

    # Meeting.

    def _gather_others(self) -> bool:
        deadline = time.monotonic() + GATHER_DEADLINE_S
        waiting: dict[int, _Peer] = {}
        unknown: list[_Peer] = []
        with _listen(self._cluster.addresses[0]) as listener:

            def complete(index: int) -> bool:
                self._look_at_the_door(listener, unknown, waiting)
                return index in waiting

            while absent := [i for i in range(1, len(self._cluster.addresses)) if not complete(i)]:
                what = f"{self._cluster.describe(absent[0])} to join the group"
                left_s = max(0.0, deadline - time.monotonic())
                if not wait_until(
                    what, functools.partial(complete, absent[0]), self._stop, deadline_s=left_s
                ):
                    return False
        for peer in unknown:
            peer.close()
        self._peers = [waiting[index] for index in sorted(waiting)]
        return True

    def _look_at_the_door(
        self, listener: socket.socket, unknown: list[_Peer], waiting: dict[int, _Peer]
    ) -> None:
        """Takes in who has connected, and lets go of who is no longer there."""
        with contextlib.suppress(BlockingIOError):
            unknown.append(_Peer(listener.accept()[0]))
        for peer in list(unknown):
            try:
                messages = peer.receive()
            except OSError:
                messages = [{}]
            if messages:
                unknown.remove(peer)
                self._admit(peer, messages[0], waiting)
        for index, peer in list(waiting.items()):
            try:
                peer.receive()
            except OSError:
                del waiting[index]
                peer.close()

    def _admit(self, peer: _Peer, message: Message, waiting: dict[int, _Peer]) -> None:
        index = message.pop("index", None)
        if type(index) is not int or not 0 < index < len(self._cluster.addresses):
            peer.close()
            return
        for key, name in (("addresses", "TF_CONFIG"), ("fingerprint", "configuration")):
            if message.get(key) != self._hello[key]:
                _log.warning("%s has another %s, and was refused", learner_name(index), name)
                peer.send({"refused": name})
                _say_farewell([peer.connection])
                return
        peer.index = index
        if index in waiting:  # It was started again.
            waiting[index].close()
        waiting[index] = peer

    def _find_chief(self) -> bool:
        found: list[_Peer] = []

        def let_go() -> bool:
            """Connects if it has to; whether the chief has said that all are there."""
            if not found:
                connection = _connect(self._cluster.addresses[0])
                if connection is None:
                    return False
                found.append(_Peer(connection, index=0))
                found[0].send(self._hello | {"index": self._cluster.index})
            try:
                messages = found[0].receive()
            except OSError:  # Perhaps it is TensorFlow's server of a chief that has yet to notice its end.
                found.pop().close()
                return False
            for message in messages:
                if "refused" in message:
                    raise ConfigurationError([self._refusal(str(message["refused"]))])
            return any("go" in message for message in messages)

        what = f"the chief, {self._cluster.describe(0)}, to have all learners of the group"
        if not wait_until(what, let_go, self._stop, deadline_s=GATHER_DEADLINE_S):
            return False
        self._peers = found
        return True

    def _refusal(self, name: str) -> str:
        if name == "TF_CONFIG":
            problem = "learn.strategy: the chief has another TF_CONFIG"
        else:
            problem = "--config: the chief has another configuration"
        return f"{problem} ({self._cluster.describe(0)}); allowed: the same for all learners of a group"

    # Watching.

    def _watch(self) -> None:
        """Listens to the others until the link is closed or the group is lost."""
        with selectors.DefaultSelector() as selector:
            for peer in self._peers:
                selector.register(peer.connection, selectors.EVENT_READ, peer)
                peer.heard = time.monotonic()
            alive_at = 0.0
            while not self._closed.is_set() and self.lost is None:
                ready = [key.data for key, _ in selector.select(_LOOK_INTERVAL_S)]
                for peer in ready:
                    if not self._listen_to(peer):
                        selector.unregister(peer.connection)
                if time.monotonic() >= alive_at:
                    self._broadcast({"alive": True})
                    alive_at = time.monotonic() + _ALIVE_INTERVAL_S
                self._tell_stop()
                self._look_for_silence()
        if self.lost is not None and not self._closed.wait(GRACE_S):
            self._fail(self.lost)

    def _listen_to(self, peer: _Peer) -> bool:
        """Takes in what a learner says; returns whether more may come."""
        try:
            messages = peer.receive()
        except OSError as error:
            if not peer.left:
                why = str(error) if isinstance(error, ConnectionError) else "its connection was closed"
                self._lose(f"{self._cluster.describe(peer.index)} was lost ({why}): {_AGAIN}")
            return False
        for message in messages:
            if "left" in message:
                peer.left = True
            elif "stop" in message and not self._stop.requested:
                _log.info("stopping, for %s was stopped", message["stop"])
                self._stop.request(signal.SIGTERM)
            elif "failed" in message:
                self._lose(str(message["failed"]))
        return True

    def _tell_stop(self) -> None:
        if self._stop.requested and not self._stop_told:
            self._stop_told = True
            self._broadcast({"stop": self._cluster.name})

    def _look_for_silence(self) -> None:
        for peer in self._peers:
            silent_s = time.monotonic() - peer.heard
            if silent_s > SILENCE_S and not peer.left:
                why = f"no sign of life for {silent_s:.0f} s"
                self._lose(f"{self._cluster.describe(peer.index)} was lost ({why}): {_AGAIN}")

    def _lose(self, why: str) -> None:
        if self.lost is None:
            self._broadcast({"failed": why})
            with self._changed:
                self.lost = why
                self._changed.notify_all()


def _listen(address: str) -> socket.socket:
    """Listens on an address's port, on all of the machine's interfaces, as TensorFlow will.

    Raises:
      RunError: somebody else does.
    """
    port = int(address.rpartition(":")[2])
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        listener = socket.create_server(("", port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise RunError(
            f"port {port}, the chief's in TF_CONFIG, cannot be listened on: {error.strerror}"
        ) from error
    listener.setblocking(False)
    return listener


def _connect(address: str) -> socket.socket | None:
    host, _, port = address.rpartition(":")
    try:
        return socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S)
    except OSError:
        return None


def _say_farewell(connections: Sequence[socket.socket]) -> None:
    """Closes connections once the other ends have taken what was sent; a plain close might take it back."""
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
