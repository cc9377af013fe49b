"""Connects the learners of a group, on the chief's address, before TensorFlow listens there.

TensorFlow's own wait for the others blocks signals and does not report who is missing.
"""

import contextlib
import functools
import logging
import socket
import time

from actorlearner.config.addresses import split_address
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.learning.cluster import Cluster, learner_name
from actorlearner.learning.group_peer import Message, Peer, say_farewell
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until

_log = logging.getLogger(__name__)

GATHER_DEADLINE_S = 300.0
"""Seconds that a learner waits for the others: they may be started in any order, on any machine."""

_CONNECT_S = 2.0


class Gathering:
    """One learner's search for the others; every ten seconds a wait logs whom it waits for."""

    def __init__(self, cluster: Cluster, fingerprint: str, stop: Stop) -> None:
        """Does not connect yet.

        Args:
          cluster: the group.
          fingerprint: the configuration's fingerprint, which has to be equal for all learners.
          stop: ends the search.
        """
        self._cluster = cluster
        self._hello: Message = {"addresses": list(cluster.addresses), "fingerprint": fingerprint}
        self._stop = stop

    def others(self) -> list[Peer] | None:
        """On the chief: listens on its port until all others have connected.

        Returns:
          Their connections; None at a stop.

        Raises:
          RunError: a learner did not connect within GATHER_DEADLINE_S, or the port is taken.
        """
        deadline = time.monotonic() + GATHER_DEADLINE_S
        waiting: dict[int, Peer] = {}
        unknown: list[Peer] = []
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
                    for peer in (*unknown, *waiting.values()):
                        peer.close()
                    return None
        for peer in unknown:
            peer.close()
        return [waiting[index] for index in sorted(waiting)]

    def _look_at_the_door(
        self, listener: socket.socket, unknown: list[Peer], waiting: dict[int, Peer]
    ) -> None:
        """Accepts a new connection, reads messages, and removes closed connections."""
        with contextlib.suppress(BlockingIOError):
            unknown.append(Peer(listener.accept()[0]))
        for peer in list(unknown):
            try:
                messages = peer.receive()
            except ConnectionError:
                messages = [{}]
            if messages:
                unknown.remove(peer)
                self._admit(peer, messages[0], waiting)
        for index, peer in list(waiting.items()):
            try:
                peer.receive()
            except ConnectionError:
                del waiting[index]
                peer.close()

    def _admit(self, peer: Peer, message: Message, waiting: dict[int, Peer]) -> None:
        index = message.pop("index", None)
        if type(index) is not int or not 0 < index < len(self._cluster.addresses):
            peer.close()
            return
        for key, name in (("addresses", "TF_CONFIG"), ("fingerprint", "configuration")):
            if message.get(key) != self._hello[key]:
                _log.warning("%s has another %s, and was refused", learner_name(index), name)
                peer.send({"refused": name})
                say_farewell([peer.connection])
                return
        peer.index = index
        if index in waiting:  # It was restarted.
            waiting[index].close()
        waiting[index] = peer

    def chief(self) -> list[Peer] | None:
        """On the other learners: waits until the chief reports that all have connected.

        Returns:
          The connection to the chief; None at a stop.

        Raises:
          ConfigurationError: the chief has another TF_CONFIG or another configuration.
          RunError: not all learners connected to it within GATHER_DEADLINE_S, or it failed.
        """
        found: list[Peer] = []

        def let_go() -> bool:
            """Connects if necessary; returns whether the chief has reported that all are connected."""
            if not found:
                connection = _connect(self._cluster.addresses[0])
                if connection is None:
                    return False
                found.append(Peer(connection, index=0))
                found[0].send(self._hello | {"index": self._cluster.index})
            try:
                messages = found[0].receive()
            except (
                ConnectionError
            ):  # Perhaps the TensorFlow server of an earlier chief that has not ended yet.
                found.pop().close()
                return False
            for message in messages:
                if "refused" in message:
                    raise ConfigurationError([self._refusal(str(message["refused"]))])
                if "failed" in message:
                    raise RunError(str(message["failed"]))
            return any("go" in message for message in messages)

        what = f"the chief, {self._cluster.describe(0)}, to have all learners of the group"
        if not wait_until(what, let_go, self._stop, deadline_s=GATHER_DEADLINE_S):
            return None
        return found

    def _refusal(self, name: str) -> str:
        if name == "TF_CONFIG":
            problem = "learn.strategy: the chief has another TF_CONFIG"
        else:
            problem = "--config: the chief has another configuration"
        return f"{problem} ({self._cluster.describe(0)}); allowed: the same for all learners of a group"


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


def _connect(address: str) -> socket.socket | None:
    try:
        return socket.create_connection(split_address(address), timeout=_CONNECT_S)
    except OSError:
        return None
