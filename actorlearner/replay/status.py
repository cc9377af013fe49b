"""What a replay server says of its experience table."""

import dataclasses

import reverb

from actorlearner.replay.layout import ReplayLayout


@dataclasses.dataclass(frozen=True)
class ReplayStatus:
    """The experience table at one moment, all in transitions.

    An item of the packed layout that an actor wrote when it stopped may hold fewer transitions than
    others; it counts as they do.

    Attributes:
      size: transitions in the table.
      inserts: transitions ever inserted, which is the env steps of all actors so far.
      samples: transitions ever handed out to the learner.
    """

    size: int
    inserts: int
    samples: int

    @property
    def samples_per_insert(self) -> float:
        """Transitions sampled for each one inserted; 0 before the first insert."""
        return self.samples / self.inserts if self.inserts else 0.0


class ReplayMonitor:
    """Asks a replay server for the status of its experience table."""

    def __init__(self, client: reverb.Client, layout: ReplayLayout) -> None:
        """Asks nothing yet."""
        self._client = client
        self._layout = layout

    def status(self, timeout_s: int) -> ReplayStatus:
        """Asks the server.

        Raises:
          reverb.errors.DeadlineExceededError: no answer within `timeout_s`.
        """
        table = self._client.server_info(timeout=timeout_s)[self._layout.table]
        limiter = table.rate_limiter_info
        transitions = self._layout.transitions_per_item
        return ReplayStatus(
            size=table.current_size * transitions,
            inserts=limiter.insert_stats.completed * transitions,
            samples=limiter.sample_stats.completed * transitions,
        )
