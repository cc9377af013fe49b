"""The base class of the layouts' writers: bounds the unconfirmed items, and writes leftovers at the end."""

import abc
import time
from collections.abc import Sequence

import reverb
from reverb import errors as reverb_errors
from tf_agents.replay_buffers import reverb_utils

from actorlearner.environments.environment import EnvSteps

PENDING_ITEMS = 2
"""Unconfirmed items with which an actor may continue; this bounds how far it runs ahead."""


class ReplayWriter(abc.ABC):
    """Writes env steps into the experience table through ReverbAddTrajectoryObservers."""

    def __init__(self, observers: Sequence[reverb_utils.ReverbAddTrajectoryObserver]) -> None:
        """Writes items through these observers."""
        self._observers = list(observers)

    @property
    def _writers(self) -> list[reverb.TrajectoryWriter]:
        # The observers' own flush and close have no deadline, so this class uses their writers.
        return [observer._get_writer() for observer in self._observers]

    @abc.abstractmethod
    def write(self, steps: EnvSteps) -> None:
        """Adds one env step of each environment; passes complete items to Reverb.

        Does not block; the arrays must not be changed afterwards.
        """

    @abc.abstractmethod
    def _write_leftovers(self) -> None:
        """Passes the incomplete items to Reverb."""

    def flush(self, timeout_s: float, pending_items: int = PENDING_ITEMS) -> bool:
        """Waits until at most `pending_items` of each observer are unconfirmed by the server.

        Returns False if that takes longer than `timeout_s`: the rate limiter blocks inserts, or the server
        does not answer. Nothing is lost; call again.
        """
        deadline = time.monotonic() + timeout_s
        return all(flushed(writer, pending_items, deadline) for writer in self._writers)

    def close(self, timeout_s: float) -> bool:
        """Writes the incomplete items, waits until the server has confirmed all items, and closes.

        Returns False if that takes longer than `timeout_s`; unconfirmed items are dropped.
        """
        self._write_leftovers()
        confirmed = self.flush(timeout_s, pending_items=0)
        if confirmed:
            for observer in self._observers:
                observer.close()
        return confirmed


def flushed(writer: reverb.TrajectoryWriter, pending_items: int, deadline: float) -> bool:
    """Waits until at most `pending_items` are unconfirmed; False at the deadline, a `time.monotonic`."""
    left_ms = round(1000 * (deadline - time.monotonic()))
    try:
        writer.flush(pending_items, timeout_ms=max(1, left_ms))  # Reverb takes 0 for no deadline.
    except reverb_errors.DeadlineExceededError:
        return False
    return True
