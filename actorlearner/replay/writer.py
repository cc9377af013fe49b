"""What every layout's writer shares: bounded memory, and an end that writes the rest."""

import abc
import time
from collections.abc import Sequence

import reverb
from reverb import errors as reverb_errors
from tf_agents.replay_buffers import reverb_utils

from actorlearner.environments.env_steps import EnvSteps

PENDING_ITEMS = 2
"""Items that may be unconfirmed while the actor goes on; it bounds how far it runs ahead."""


class ReplayWriter(abc.ABC):
    """Writes env steps into the experience table through ReverbAddTrajectoryObservers."""

    def __init__(self, observers: Sequence[reverb_utils.ReverbAddTrajectoryObserver]) -> None:
        """Takes the observers that items are written through."""
        self._observers = list(observers)

    @property
    def _writers(self) -> list[reverb.TrajectoryWriter]:
        # The observers' own flush and close wait without a deadline, so their writers are needed.
        return [observer._get_writer() for observer in self._observers]

    @abc.abstractmethod
    def write(self, steps: EnvSteps) -> None:
        """Adds one env step of each environment; hands over every item that it completes.

        Does not block; the arrays may be reused afterwards.
        """

    @abc.abstractmethod
    def _write_rest(self) -> None:
        """Hands over what still waits for more env steps to come."""

    def flush(self, timeout_s: float, pending_items: int = PENDING_ITEMS) -> bool:
        """Waits until at most `pending_items` of each observer are unconfirmed by the server.

        Returns:
          False if that took longer than `timeout_s`: the rate limiter holds inserts back, or the server
          does not answer. Nothing is lost by it; call again.
        """
        deadline = time.monotonic() + timeout_s
        return all(flushed(writer, pending_items, deadline) for writer in self._writers)

    def close(self, timeout_s: float) -> bool:
        """Writes what waits for more env steps, confirms what is pending and closes.

        Returns:
          False if that took longer than `timeout_s`; what could not be confirmed in time is dropped.
        """
        self._write_rest()
        confirmed = self.flush(timeout_s, pending_items=0)
        if confirmed:
            for observer in self._observers:
                observer.close()
        return confirmed


def flushed(writer: reverb.TrajectoryWriter, pending_items: int, deadline: float) -> bool:
    """Waits until at most `pending_items` are unconfirmed; returns whether they were before the deadline.

    Args:
      writer: of the items.
      pending_items: that may be unconfirmed.
      deadline: in seconds, as `time.monotonic` counts.
    """
    left_ms = round(1000 * (deadline - time.monotonic()))
    try:
        writer.flush(pending_items, timeout_ms=max(1, left_ms))  # For Reverb, 0 is without end.
    except reverb_errors.DeadlineExceededError:
        return False
    return True
