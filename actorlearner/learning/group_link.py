"""What the learners of a group tell each other beside TensorFlow: who stops, who failed, who is there.

TensorFlow's collectives wait for a learner that does not come, and cannot tell which one that is. So the
connections by which the learners have found each other stay. Each end says every few seconds that it lives;
one that is closed or silent tells that a learner is lost.
"""

import logging
import selectors
import signal
import threading
import time
from collections.abc import Callable

from actorlearner.learning.cluster import Cluster
from actorlearner.learning.group_gathering import Gathering
from actorlearner.learning.group_peer import Message, Peer, say_farewell
from actorlearner.process.stop import Stop

_log = logging.getLogger(__name__)

SILENCE_S = 30.0
"""Seconds without a word after which a learner is lost, whose connection nobody has closed."""

GRACE_S = 5.0
"""How long the role of a learner whose group has failed may take to end by itself."""

_ALIVE_INTERVAL_S = 2.0
_LOOK_INTERVAL_S = 0.2

_AGAIN = "all learners of the group have to be started again, and go on from the chief's last checkpoint"


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
        self._gathering = Gathering(cluster, fingerprint, stop)
        self._stop = stop
        self._fail = fail
        self._peers: list[Peer] = []
        self._stop_told = False
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="group", daemon=True)

    def gather(self) -> bool:
        """Waits for all others, see Gathering; returns False at a stop."""
        peers = self._gathering.others() if self._cluster.is_chief else self._gathering.chief()
        self._peers = peers or []
        return peers is not None

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
        """Ends the connections; blocks for some seconds at most.

        Args:
          failure: what the others are told that this learner failed by; None if it did not.
        """
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        self._tell_stop()  # One that came just now.
        if failure is not None and self.lost is None:
            self._broadcast({"failed": f"{self._cluster.name} failed: {failure}"})
        else:
            self.leave()
        say_farewell([peer.connection for peer in self._peers])
        self._peers = []

    def _broadcast(self, message: Message) -> None:
        for peer in self._peers:
            peer.send(message)

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

    def _listen_to(self, peer: Peer) -> bool:
        """Takes in what a learner says; returns whether more may come."""
        try:
            messages = peer.receive()
        except ConnectionError as error:
            if not peer.left:
                self._lose(f"{self._cluster.describe(peer.index)} was lost ({error}): {_AGAIN}")
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
