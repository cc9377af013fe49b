"""The status of replay: of one server, or of several that are watched in the background."""

import dataclasses
import logging
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import reverb
from reverb import reverb_types

from actorlearner.process.stop import Stop
from actorlearner.replay.connection import ReplayServer, check_same_run
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.reverb_calls import UNREACHABLE

_log = logging.getLogger(__name__)

_INTERVAL_S = 1.0
_TIMEOUT_S = 5


@dataclasses.dataclass(frozen=True)
class ReplayStatus:
    """The experience table at one moment, in env steps; samples are in the unit of `learn.batch_size`.

    The last item that an actor of the packed layout writes when it stops may hold fewer transitions than
    others; it counts as a full one.

    Attributes:
      size: transitions in the table.
      inserts: transitions inserted so far, which is the number of env steps of all actors.
      samples: transitions sampled by the learner so far.
      inserts_blocked_s, sampling_blocked_s: seconds since the server's start in which its rate limiter
        blocked inserts of actors, and requests of the learner. For several servers, their mean.
    """

    size: int
    inserts: int
    samples: int
    inserts_blocked_s: float = dataclasses.field(default=0.0, compare=False)
    sampling_blocked_s: float = dataclasses.field(default=0.0, compare=False)

    @property
    def samples_per_insert(self) -> float:
        """Sampled transitions per inserted transition; 0 before the first insert."""
        return self.samples / self.inserts if self.inserts else 0.0


def status_of(table: reverb_types.TableInfo, env_steps_per_item: int, samples_per_item: int) -> ReplayStatus:
    """Converts Reverb's figures of an experience table, an entry of `server_info`.

    The factors are attributes of the table's layout.
    """
    limiter, worker = table.rate_limiter_info, table.table_worker_time
    return ReplayStatus(
        size=table.current_size * env_steps_per_item,
        inserts=limiter.insert_stats.completed * env_steps_per_item,
        samples=limiter.sample_stats.completed * samples_per_item,
        # While the thread that serves the table waits for sampling, inserts are blocked; and vice versa.
        inserts_blocked_s=worker.waiting_for_sampling_ms / 1000,
        sampling_blocked_s=worker.waiting_for_inserts_ms / 1000,
    )


class BlockedFractions(NamedTuple):
    """Fractions of the time between two polls in which the rate limiter blocked; their sum is at most 1."""

    inserts: float
    sampling: float


class BlockedTime:
    """Turns the blocked seconds that a replay server counts into fractions of the time between polls."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts without a status; `clock` returns the time in seconds."""
        self._clock = clock
        self._last: tuple[float, ReplayStatus] | None = None

    def update(self, status: ReplayStatus) -> BlockedFractions | None:
        """Returns the fractions since the last status; None for the first, or if the server was restarted."""
        now = self._clock()
        last, self._last = self._last, (now, status)
        if last is None:
            return None
        elapsed_s = max(now - last[0], 1e-9)
        inserts = status.inserts_blocked_s - last[1].inserts_blocked_s
        sampling = status.sampling_blocked_s - last[1].sampling_blocked_s
        if inserts < 0 or sampling < 0:
            return None
        return BlockedFractions(min(1.0, inserts / elapsed_s), min(1.0, sampling / elapsed_s))


class ReplayMonitor(Protocol):
    """Reports the status of replay, whether it has one server or several.

    Raises:
      reverb_calls.UNREACHABLE: a server does not answer.
      RunError: a server of another run has replaced one of this run.
    """

    def status(self, timeout_s: int) -> ReplayStatus:
        """Returns the combined status of all servers; blocks for `timeout_s` at most."""

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """Returns the transitions in each server, by its address; blocks for `timeout_s` at most."""


class ServerMonitor:
    """A ReplayMonitor that polls one server at every call."""

    def __init__(
        self, client: reverb.Client, layout: ReplayLayout, run_id: str | None = None, address: str = ""
    ) -> None:
        """Does not poll yet; `run_id` and `address` are for `check_same_run`."""
        self._client = client
        self._layout = layout
        self._run_id = run_id
        self._address = address

    def status(self, timeout_s: int) -> ReplayStatus:
        """Polls the server; blocks for `timeout_s` at most."""
        tables = self._client.server_info(timeout=timeout_s)
        check_same_run(tables, self._run_id, self._address)
        layout = self._layout
        return status_of(tables[layout.table], layout.env_steps_per_item, layout.samples_per_item)

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """Polls the server; blocks for `timeout_s` at most."""
        return {self._address: self.status(timeout_s).size}


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
        """Starts the thread, which calls `changed` when `answers` changes; it ends at `stop`."""
        self.address = server.address
        self.answers = True
        self.status = ReplayStatus(0, 0, 0)
        self._monitor = ServerMonitor(server.client, layout, server.run_id, server.address)
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
            self.status = self._monitor.status(_TIMEOUT_S)
            self.answers = True
        except UNREACHABLE:
            self.answers = False
        if self.answers != answered:
            self._changed(self)


class ReplayWatch:
    """A ReplayMonitor of several servers that never blocks.

    Its status is some seconds old at most; a server that does not answer keeps its last known one. Each
    server that stops answering, or answers again, is logged once.
    """

    def __init__(self, servers: Sequence[ReplayServer], layout: ReplayLayout, stop: Stop) -> None:
        """Starts a thread for each server; they end with the process or at `stop`."""
        self._lock = threading.Lock()
        with self._lock:  # Nothing is logged before all of them are known.
            self._watches = [ServerWatch(server, layout, stop, self._log_change) for server in servers]

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
        for watch in self._watches:
            watch.check()
        return {watch.address: watch.status for watch in self._watches}

    def _log_change(self, changed: ServerWatch) -> None:
        with self._lock:
            answering, total = sum(watch.answers for watch in self._watches), len(self._watches)
        if changed.answers:
            text = f"answers again: training goes on with the transitions of {answering} of {total}"
        elif answering:
            others = f"the other {answering} of {total}"
            text = f"does not answer: training goes on with the transitions of {others}"
        else:
            text = f"does not answer: training waits for any of the {total}"
        _log.warning("the replay server %s %s", changed.address, text)
