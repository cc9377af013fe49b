"""The status of a replay server's experience table."""

import dataclasses
from typing import Protocol

import reverb
from reverb import reverb_types

from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.run_identity import check_same_run


@dataclasses.dataclass(frozen=True)
class ReplayStatus:
    """The experience table at one moment, all in transitions.

    The last item that an actor of the packed layout writes when it stops may hold fewer transitions than
    others; it counts as a full one.

    Attributes:
      size: transitions in the table.
      inserts: transitions inserted so far, which is the number of env steps of all actors.
      samples: transitions sampled by the learner so far.
      inserts_barred_s, sampling_barred_s: seconds since the server's start in which its rate limiter blocked
        inserts of actors, and requests of the learner. Reverb counts them in the thread that serves the
        table (`table_worker_time`). For several servers, their mean.
    """

    size: int
    inserts: int
    samples: int
    inserts_barred_s: float = dataclasses.field(default=0.0, compare=False)
    sampling_barred_s: float = dataclasses.field(default=0.0, compare=False)

    @property
    def samples_per_insert(self) -> float:
        """Sampled transitions per inserted transition; 0 before the first insert."""
        return self.samples / self.inserts if self.inserts else 0.0


class ReplayMonitor(Protocol):
    """Reports the status of replay, whether it has one server or several."""

    def status(self, timeout_s: int) -> ReplayStatus:
        """Returns the status of all servers together; blocks for `timeout_s` at most.

        Raises:
          reverb_calls.UNREACHABLE: a server does not answer.
          RunError: a server of another run has replaced one of this run.
        """

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """Returns the transitions in each server, by its address; blocks and raises as `status`."""


def status_of(table: reverb_types.TableInfo, transitions: int) -> ReplayStatus:
    """Converts Reverb's figures of an experience table.

    Args:
      table: one entry of `server_info`.
      transitions: transitions in an item.
    """
    limiter, worker = table.rate_limiter_info, table.table_worker_time
    return ReplayStatus(
        size=table.current_size * transitions,
        inserts=limiter.insert_stats.completed * transitions,
        samples=limiter.sample_stats.completed * transitions,
        # While the worker waits for sampling, inserts are blocked; and the other way round.
        inserts_barred_s=worker.waiting_for_sampling_ms / 1000,
        sampling_barred_s=worker.waiting_for_inserts_ms / 1000,
    )


class ServerMonitor:
    """A ReplayMonitor of one server, which it asks at every call."""

    def __init__(
        self, client: reverb.Client, layout: ReplayLayout, run_id: str | None = None, address: str = ""
    ) -> None:
        """Asks nothing yet.

        Args:
          client: a client of the server.
          layout: the layout of its experience table.
          run_id: the expected run id; None accepts any.
          address: its HOST:PORT for messages, see `check_same_run`.
        """
        self._client = client
        self._layout = layout
        self._run_id = run_id
        self._address = address

    def status(self, timeout_s: int) -> ReplayStatus:
        """Asks the server for its status; blocks for `timeout_s` at most."""
        tables = self._client.server_info(timeout=timeout_s)
        check_same_run(tables, self._run_id, self._address)
        return status_of(tables[self._layout.table], self._layout.transitions_per_item)

    def sizes(self, timeout_s: int) -> dict[str, int]:
        """Asks the server for its transitions; blocks for `timeout_s` at most."""
        return {self._address: self.status(timeout_s).size}
