"""Polls replay servers on background threads, so that a slow server never blocks a role."""

import logging
import statistics
import threading
from collections.abc import Callable, Sequence

from actorlearner.process.stop import Stop
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import ReplayStatus

_log = logging.getLogger(__name__)

_INTERVAL_S = 1.0
_TIMEOUT_S = 5


class WatchedServer:
    """Polls one replay server every second, in a thread of its own.

    Attributes:
      address: HOST:PORT of the server.
      answers: whether it answered the last poll within five seconds; true before the first one.
      status: its last known status; all zeros before its first answer.
    """

    def __init__(
        self,
        server: ReplayServer,
        stop: Stop,
        changed: Callable[["WatchedServer"], None] = lambda server: None,
    ) -> None:
        """Starts the thread, which calls `changed` when `answers` changes; it ends at `stop`."""
        self.address = server.address
        self.answers = True
        self.status = ReplayStatus(0, 0, 0)
        self._server = server
        self._stop = stop
        self._changed = changed
        self._failure: Exception | None = None
        # A daemon, because it may be blocked by a server that does not answer.
        threading.Thread(target=self._poll_until_stopped, name="replay server", daemon=True).start()

    def check(self) -> None:
        """Raises a RunError if a server of another run has replaced this one. Does not block."""
        if self._failure is not None:
            raise self._failure

    def _poll_until_stopped(self) -> None:
        try:
            self._poll()
            while not self._stop.wait(_INTERVAL_S):
                self._poll()
        except Exception as error:
            self._failure = error  # Raised again by `check`, in the thread that does the role's work.

    def _poll(self) -> None:
        answered = self.answers
        try:
            self.status = self._server.status(_TIMEOUT_S)
            self.answers = True
        except UNREACHABLE:
            self.answers = False
        if self.answers != answered:
            self._changed(self)


class WatchedServers:
    """A ReplayStatusSource of several servers that never blocks.

    The status is a few seconds old at most; of a server that does not answer, the last known status counts:
    zeros if it has not answered yet. A log line reports each server that stops answering or answers again.
    """

    def __init__(self, servers: Sequence[ReplayServer], stop: Stop) -> None:
        """Starts a thread for each server; they end with the process or at `stop`."""
        self._lock = threading.Lock()
        with self._lock:  # `_log_change`, called by the threads, needs the complete list.
            self._servers = [WatchedServer(server, stop, self._log_change) for server in servers]

    def status(self, timeout_s: int) -> ReplayStatus:
        """Returns the combined status of all servers; does not block."""
        statuses = list(self._statuses().values())
        return ReplayStatus(
            size=sum(status.size for status in statuses),
            inserts=sum(status.inserts for status in statuses),
            samples=sum(status.samples for status in statuses),
            inserts_blocked_s=statistics.fmean(status.inserts_blocked_s for status in statuses),
            sampling_blocked_s=statistics.fmean(status.sampling_blocked_s for status in statuses),
        )

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """Returns the transitions in each server, by its address; does not block."""
        return {address: status.size for address, status in self._statuses().items()}

    def _statuses(self) -> dict[str, ReplayStatus]:
        for server in self._servers:
            server.check()
        return {server.address: server.status for server in self._servers}

    def _log_change(self, changed: WatchedServer) -> None:
        with self._lock:
            answering, total = sum(server.answers for server in self._servers), len(self._servers)
        if changed.answers:
            text = f"answers again: training goes on with the transitions of {answering} of {total}"
        elif answering:
            others = f"the other {answering} of {total}"
            text = f"does not answer: training goes on with the transitions of {others}"
        else:
            text = f"does not answer: training waits for any of the {total}"
        _log.warning("the replay server %s %s", changed.address, text)
