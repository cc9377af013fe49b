"""What a replay server says of its experience table."""

import dataclasses
from typing import Protocol

import reverb
from reverb import reverb_types

from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.run_identity import check_same_run


@dataclasses.dataclass(frozen=True)
class ReplayStatus:
    """The experience table at one moment, all in transitions.

    An item of the packed layout that an actor wrote when it stopped may hold fewer transitions than
    others; it counts as they do.

    Attributes:
      size: transitions in the table.
      inserts: transitions ever inserted, which is the env steps of all actors so far.
      samples: transitions ever handed out to the learner.
      inserts_barred_s, sampling_barred_s: seconds since the server was started in which its rate limiter
        held back items of actors that waited to get in, and requests of the learner that waited for items.
        Reverb counts them in the thread that serves the table (`table_worker_time`). Of several servers,
        their mean.
    """

    size: int
    inserts: int
    samples: int
    inserts_barred_s: float = dataclasses.field(default=0.0, compare=False)
    sampling_barred_s: float = dataclasses.field(default=0.0, compare=False)

    @property
    def samples_per_insert(self) -> float:
        """Transitions sampled for each one inserted; 0 before the first insert."""
        return self.samples / self.inserts if self.inserts else 0.0


class ReplayMonitor(Protocol):
    """Tells the status of replay, be it of one server or of several."""

    def status(self, timeout_s: int) -> ReplayStatus:
        """The figures of all servers together; blocks for `timeout_s` at most.

        Raises:
          reverb_calls.UNREACHABLE: they cannot be told.
          RunError: another run's server has taken the place of one of this run's.
        """

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """Transitions in each server, by its address; blocks and raises as `status` does."""


def status_of(table: reverb_types.TableInfo, transitions: int) -> ReplayStatus:
    """The status that Reverb's figures of an experience table mean.

    Args:
      table: one entry of `server_info`.
      transitions: of an item.
    """
    limiter, worker = table.rate_limiter_info, table.table_worker_time
    return ReplayStatus(
        size=table.current_size * transitions,
        inserts=limiter.insert_stats.completed * transitions,
        samples=limiter.sample_stats.completed * transitions,
        # The worker waits for sampling, to go on with inserts; and the other way round.
        inserts_barred_s=worker.waiting_for_sampling_ms / 1000,
        sampling_barred_s=worker.waiting_for_inserts_ms / 1000,
    )


class ServerMonitor:
    """See ReplayMonitor: asks one replay server, at every call."""

    def __init__(
        self, client: reverb.Client, layout: ReplayLayout, run_id: str | None = None, address: str = ""
    ) -> None:
        """Asks nothing yet.

        Args:
          client: of the server.
          layout: of its experience table.
          run_id: of the server; None accepts any.
          address: of the server; for messages, see `check_same_run`.
        """
        self._client = client
        self._layout = layout
        self._run_id = run_id
        self._address = address

    def status(self, timeout_s: int) -> ReplayStatus:
        """See ReplayMonitor."""
        tables = self._client.server_info(timeout=timeout_s)
        check_same_run(tables, self._run_id, self._address)
        return status_of(tables[self._layout.table], self._layout.transitions_per_item)

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """See ReplayMonitor."""
        return {self._address: self.status(timeout_s).size}
