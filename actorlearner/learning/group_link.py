"""The learners' own connections in addition to TensorFlow's: stops, failures and heartbeats.

TensorFlow's collectives block if a learner is missing, and do not name it. So the connections of `gather`
stay open. Each end sends a heartbeat every few seconds; a learner whose connection is closed or silent counts
as lost.
"""

import logging
import selectors
import threading
import time
from collections.abc import Callable

from actorlearner.learning.cluster import Cluster
from actorlearner.learning.group_gathering import gather
from actorlearner.learning.group_peer import Message, Peer, close_peers, follow_stop
from actorlearner.process.stop import Stop

_log = logging.getLogger(__name__)

SILENCE_S = 30.0
"""Seconds without a heartbeat after which a learner counts as lost, although its connection is open."""

GRACE_S = 5.0
"""Seconds that a learner gets to end by itself after its group has failed; then its process is ended."""

_HEARTBEAT_INTERVAL_S = 2.0
_POLL_INTERVAL_S = 0.2

_RESTART = "restart all learners of the group; they resume from the chief's last checkpoint"


class GroupLink:
    """This learner's connections: on the chief to all other learners, on the others to the chief.

    Attributes:
      lost: the reason why the group cannot continue; None while it can.
    """

    def __init__(self, cluster: Cluster, fingerprint: str, stop: Stop, fail: Callable[[str], object]) -> None:
        """Does not connect yet.

        Args:
          cluster: the group.
          fingerprint: the configuration's fingerprint, which has to be equal for all learners.
          stop: this learner's stop. A request is reported to the peers; a peer's stop requests this one.
          fail: ends this process; called on a thread with the value of `lost`, GRACE_S after the group was
            lost, unless this link was closed before.
        """
        self.lost: str | None = None
        self._cluster = cluster
        self._fingerprint = fingerprint
        self._stop = stop
        self._fail = fail
        self._peers: list[Peer] = []
        self._stop_reported = False
        self._has_lost = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="group", daemon=True)

    def gather(self) -> bool:
        """Connects the learners, see the function `gather`; returns False at a stop."""
        peers = gather(self._cluster, self._fingerprint, self._stop)
        self._peers = peers or []
        return peers is not None

    def begin(self) -> None:
        """Starts the thread that watches the peers; the chief also lets the other learners continue.

        The chief calls it once its TensorFlow server listens.
        """
        self._broadcast({"go": True})
        self._thread.start()

    def wait_for_loss(self, timeout_s: float) -> str | None:
        """Blocks until a learner is lost, up to `timeout_s`; returns `lost`."""
        self._has_lost.wait(timeout_s)
        return self.lost

    @property
    def others_have_left(self) -> bool:
        """True once all peers have ended normally."""
        return all(peer.left for peer in self._peers)

    def leave(self) -> None:
        """Reports to the peers that this learner ends normally."""
        self._broadcast({"left": True})

    def close(self, failure: str | None = None) -> None:
        """Closes the connections; blocks for some seconds at most.

        Args:
          failure: why this learner failed, for the peers; None if it did not.
        """
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        self._report_stop()  # For a stop that was requested just now.
        if failure is not None and self.lost is None:
            self._broadcast({"failed": f"{self._cluster.name} failed: {failure}"})
        else:
            self.leave()
        close_peers(self._peers)
        self._peers = []

    def _broadcast(self, message: Message) -> None:
        for peer in self._peers:
            peer.send(message)

    def _watch(self) -> None:
        """Reads the others' messages until the link is closed or the group is lost."""
        with selectors.DefaultSelector() as selector:
            for peer in self._peers:
                selector.register(peer.connection, selectors.EVENT_READ, peer)
                peer.heard = time.monotonic()
            heartbeat_at = 0.0
            while not self._closed.is_set() and self.lost is None:
                ready = [key.data for key, _ in selector.select(_POLL_INTERVAL_S)]
                for peer in ready:
                    if not self._read_messages(peer):
                        selector.unregister(peer.connection)
                if time.monotonic() >= heartbeat_at:
                    self._broadcast({"alive": True})
                    heartbeat_at = time.monotonic() + _HEARTBEAT_INTERVAL_S
                self._report_stop()
                self._check_silence()
        if self.lost is not None and not self._closed.wait(GRACE_S):
            self._fail(self.lost)

    def _read_messages(self, peer: Peer) -> bool:
        """Reads a learner's messages; returns whether more may come."""
        try:
            messages = peer.receive()
        except ConnectionError as error:
            if not peer.left:
                self._lose(f"{self._cluster.describe(peer.index)} was lost ({error}): {_RESTART}")
            return False
        for message in messages:
            follow_stop(message, self._stop)
            if "left" in message:
                peer.left = True
            elif "failed" in message:
                self._lose(str(message["failed"]))
        return True

    def _report_stop(self) -> None:
        if self._stop.requested and not self._stop_reported:
            self._stop_reported = True
            self._broadcast({"stop": self._cluster.name})

    def _check_silence(self) -> None:
        for peer in self._peers:
            silent_s = time.monotonic() - peer.heard
            if silent_s > SILENCE_S and not peer.left:
                why = f"no heartbeat for {silent_s:.0f} s"
                self._lose(f"{self._cluster.describe(peer.index)} was lost ({why}): {_RESTART}")

    def _lose(self, why: str) -> None:
        if self.lost is None:
            self._broadcast({"failed": why})
            self.lost = why
            self._has_lost.set()
