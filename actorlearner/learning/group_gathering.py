"""Connects the learners of a group, on the chief's address, before TensorFlow listens there.

TensorFlow's own wait for the others blocks signals and does not report who is missing.
"""

import contextlib
import logging
import socket

from actorlearner.config.addresses import split_address
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.learning.cluster import Cluster, learner_name
from actorlearner.learning.group_peer import Message, Peer, close_peers, follow_stop
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until

_log = logging.getLogger(__name__)

GATHER_DEADLINE_S = 300.0
"""Seconds that a learner waits for the others: they may be started in any order, on any machine."""

_CONNECT_S = 2.0


def gather(cluster: Cluster, fingerprint: str, stop: Stop) -> list[Peer] | None:
    """Connects the chief with all other learners; every ten seconds it logs whom it waits for.

    Args:
      cluster: the group, and the index of this learner.
      fingerprint: the configuration's fingerprint, which has to be equal for all learners.
      stop: ends the wait.

    Returns:
      On the chief, the connections to the other learners, by index. On another learner, the connection to
      the chief, once the chief has all learners. None at a stop.

    Raises:
      ConfigurationError: the chief has another TF_CONFIG or another configuration.
      RunError: a learner did not connect within GATHER_DEADLINE_S, the chief failed, or its port is taken.
    """
    hello: Message = {"addresses": list(cluster.addresses), "fingerprint": fingerprint}
    if not cluster.is_chief:
        return _join_chief(cluster, hello, stop)
    with _listen(cluster.addresses[0]) as listener:
        return _Reception(cluster, hello, listener).wait_for_all(stop)


class _Reception:
    """The chief's side of `gather`: accepts connections until every other learner has joined."""

    def __init__(self, cluster: Cluster, hello: Message, listener: socket.socket) -> None:
        self._cluster = cluster
        self._hello = hello
        self._listener = listener
        self._unknown: list[Peer] = []
        self._joined: dict[int, Peer] = {}

    def wait_for_all(self, stop: Stop) -> list[Peer] | None:
        def all_joined() -> bool:
            self._poll()
            return len(self._joined) == len(self._cluster.addresses) - 1

        def missing() -> str:
            absent = next(i for i in range(1, len(self._cluster.addresses)) if i not in self._joined)
            return f"{self._cluster.describe(absent)} to join the group"

        complete = wait_until(missing, all_joined, stop, deadline_s=GATHER_DEADLINE_S)
        for peer in self._unknown if complete else (*self._unknown, *self._joined.values()):
            peer.connection.close()
        return [self._joined[index] for index in sorted(self._joined)] if complete else None

    def _poll(self) -> None:
        """Accepts a new connection, reads messages, and removes closed connections."""
        with contextlib.suppress(BlockingIOError):
            self._unknown.append(Peer(self._listener.accept()[0]))
        for peer in list(self._unknown):
            try:
                messages = peer.receive()
            except ConnectionError:
                messages = [{}]
            if messages:
                self._unknown.remove(peer)
                self._admit(peer, messages[0])
        for index, peer in list(self._joined.items()):
            try:
                peer.receive()
            except ConnectionError:
                del self._joined[index]
                peer.connection.close()

    def _admit(self, peer: Peer, message: Message) -> None:
        index = message.get("index")
        if type(index) is not int or not 0 < index < len(self._cluster.addresses):
            peer.connection.close()
            return
        for key, name in (("addresses", "TF_CONFIG"), ("fingerprint", "configuration")):
            if message.get(key) != self._hello[key]:
                _log.warning("%s has another %s, and was refused", learner_name(index), name)
                peer.send({"refused": name})
                close_peers([peer])
                return
        peer.index = index
        if index in self._joined:  # It was restarted.
            self._joined[index].connection.close()
        self._joined[index] = peer


def _join_chief(cluster: Cluster, hello: Message, stop: Stop) -> list[Peer] | None:
    """Connects to the chief, and waits until it reports that all have connected."""
    peers: list[Peer] = []

    def all_joined() -> bool:
        if not peers:
            try:
                connection = socket.create_connection(split_address(cluster.addresses[0]), timeout=_CONNECT_S)
            except OSError:
                return False
            peers.append(Peer(connection, index=0))
            peers[0].send(hello | {"index": cluster.index})
        try:
            messages = peers[0].receive()
        except ConnectionError:  # Perhaps the TensorFlow server of an earlier chief that has not ended yet.
            peers.pop().connection.close()
            return False
        for message in messages:
            follow_stop(message, stop)  # Nobody else reads a report that arrives together with "go".
            if "refused" in message:
                raise ConfigurationError([_refusal(cluster, str(message["refused"]))])
            if "failed" in message:
                raise RunError(str(message["failed"]))
        return any("go" in message for message in messages)

    what = f"the chief, {cluster.describe(0)}, to have all learners of the group"
    return peers if wait_until(what, all_joined, stop, deadline_s=GATHER_DEADLINE_S) else None


def _refusal(cluster: Cluster, name: str) -> str:
    key = "learn.strategy" if name == "TF_CONFIG" else "--config"
    chief = cluster.describe(0)
    return f"{key}: the chief has another {name} ({chief}); allowed: the same for all learners of a group"


def _listen(address: str) -> socket.socket:
    """Listens on an address's port, on all interfaces of the machine, as TensorFlow will.

    Raises:
      RunError: the port is taken.
    """
    _, port = split_address(address)
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
