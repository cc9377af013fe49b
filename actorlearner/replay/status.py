"""What a replay server says of its experience table."""

import dataclasses

import reverb

from actorlearner.replay.rate_limit import ROWS_PER_ITEM
from actorlearner.replay.tables import EXPERIENCE_TABLE


@dataclasses.dataclass(frozen=True)
class ReplayStatus:
    """The experience table at one moment, all in transitions.

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


def replay_status(client: reverb.Client, timeout_s: int) -> ReplayStatus:
    """Asks the server.

    Raises:
      reverb.errors.DeadlineExceededError: no answer within `timeout_s`.
    """
    table = client.server_info(timeout=timeout_s)[EXPERIENCE_TABLE]
    limiter = table.rate_limiter_info
    return ReplayStatus(
        size=table.current_size * ROWS_PER_ITEM,
        inserts=limiter.insert_stats.completed * ROWS_PER_ITEM,
        samples=limiter.sample_stats.completed * ROWS_PER_ITEM,
    )
