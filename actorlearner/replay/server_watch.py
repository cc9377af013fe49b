"""Watches several replay servers: their status together, and which of them do not answer."""

import logging
import threading
from collections.abc import Callable, Sequence

from actorlearner.process.stop import Stop
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import ReplayStatus, ServerMonitor

_log = logging.getLogger(__name__)

_INTERVAL_S = 1.0
_TIMEOUT_S = 5


class ServerWatch:
    """Polls one replay server every second, in a thread of its own.

    Attributes:
      address: HOST:PORT of the server.
      answers: whether it answered the last poll within five seconds; true before the first one.
      status: its last known status.
    """

    def __init__(
        self,
        server: ReplayServer,
        layout: ReplayLayout,
        stop: Stop,
        changed: Callable[["ServerWatch"], None] = lambda watch: None,
    ) -> None:
        """Starts the thread; it ends with the process or at `stop`.

        Args:
          server: the server to poll.
          layout: the layout of its experience table.
          stop: ends the thread.
          changed: called in the thread whenever `answers` changes.
        """
        self.address = server.address
        self.answers = True
        self.status = ReplayStatus(0, 0, 0)
        self._monitor = ServerMonitor(server.client, layout, server.run_id, server.address)
        self._stop = stop
        self._changed = changed
        self._failure: BaseException | None = None
        # A daemon, because it may be blocked by a server that does not answer.
        threading.Thread(target=self._watch, name="replay server", daemon=True).start()

    def check(self) -> None:
        """Raises the error of the thread, if there was one. Does not block.

        Raises:
          RunError: a server of another run has replaced this one.
        """
        if self._failure is not None:
            raise self._failure

    def _watch(self) -> None:
        try:
            while True:
                self._look()
                if self._stop.wait(_INTERVAL_S):
                    return
        except Exception as error:
            self._failure = error  # Raised again by `check`, in the thread that does the role's work.

    def _look(self) -> None:
        answered = self.answers
        try:
            self.status = self._monitor.status(_TIMEOUT_S)
            self.answers = True
        except UNREACHABLE:
            self.answers = False
        if self.answers != answered:
            self._changed(self)


class ReplayWatch:
    """A ReplayMonitor of several servers that never blocks.

    Its status is at most some seconds old; for a server that does not answer it is the last known one. Each
    server that stops answering, or answers again, is logged once.
    """

    def __init__(self, servers: Sequence[ReplayServer], layout: ReplayLayout, stop: Stop) -> None:
        """Starts a thread for each server; they end with the process or at `stop`."""
        self._lock = threading.Lock()
        self._watches: list[ServerWatch] = []
        with self._lock:  # Nothing is logged before all of them are known.
            self._watches += [ServerWatch(server, layout, stop, self._say) for server in servers]

    def status(self, timeout_s: int) -> ReplayStatus:
        """Returns the status of all servers together; does not block."""
        found = self._statuses()
        return ReplayStatus(
            size=sum(status.size for status in found),
            inserts=sum(status.inserts for status in found),
            samples=sum(status.samples for status in found),
            inserts_barred_s=sum(status.inserts_barred_s for status in found) / len(found),
            sampling_barred_s=sum(status.sampling_barred_s for status in found) / len(found),
        )

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """Returns the transitions in each server, by its address; does not block."""
        statuses = self._statuses()
        return {watch.address: status.size for watch, status in zip(self._watches, statuses, strict=True)}

    def _statuses(self) -> list[ReplayStatus]:
        for watch in self._watches:
            watch.check()
        return [watch.status for watch in self._watches]

    def _say(self, changed: ServerWatch) -> None:
        with self._lock:
            answering, total = sum(watch.answers for watch in self._watches), len(self._watches)
        if changed.answers:
            rest = f"answers again: training goes on with the transitions of {answering} of {total}"
        elif answering:
            rest = (
                f"does not answer: training goes on with the transitions of the other {answering} of {total}"
            )
        else:
            rest = f"does not answer: training waits for any of the {total}"
        _log.warning("the replay server %s %s", changed.address, rest)
