"""Writes transitions into the experience table through ReverbAddTrajectoryObserver."""

from typing import Any

import numpy as np
import reverb
from reverb import errors as reverb_errors
from tf_agents.replay_buffers import reverb_utils

from actorlearner.replay.layout import Rows, TransitionLayout
from actorlearner.replay.rate_limit import ROWS_PER_ITEM
from actorlearner.replay.tables import EXPERIENCE_TABLE

_PENDING_ITEMS = 2
"""Items that may be unconfirmed while the actor goes on; it bounds how far it runs ahead."""


class _ItemStep(dict[str, Any]):
    """A block of rows for each dtype, in the form in which the observer takes a step."""

    def is_boundary(self) -> bool:
        """Always False: a row needs no neighbour, so no row ends anything."""
        return False


class TransitionWriter:
    """Gathers rows into items and writes them.

    Rows of all the environments of an actor share the items, so that the rows of an item are less
    correlated than consecutive steps of one environment.
    """

    def __init__(self, client: reverb.Client, layout: TransitionLayout) -> None:
        """Opens a writer; it connects at the first item."""
        self._layout = layout
        self._observer = reverb_utils.ReverbAddTrajectoryObserver(
            client, EXPERIENCE_TABLE, sequence_length=1, stride_length=1
        )
        # One chunk an item: a chunk shared by two items would travel whole with either of them.
        for dtype in layout.widths:
            self._writer.configure((dtype,), num_keep_alive_refs=1, max_chunk_length=1)
        self._block = self._new_block()
        self._filled = 0

    @property
    def _writer(self) -> reverb.TrajectoryWriter:
        # The observer's own flush and close wait without a deadline, so its writer is needed.
        return self._observer._get_writer()

    def _new_block(self) -> _ItemStep:
        # Each item gets arrays of its own: the writer may still read them after they are handed over.
        return _ItemStep(
            {dtype: np.empty((ROWS_PER_ITEM, width), dtype) for dtype, width in self._layout.widths.items()}
        )

    @property
    def unwritten(self) -> int:
        """Transitions that wait for their item to fill."""
        return self._filled

    def write(self, rows: Rows) -> None:
        """Adds rows; hands over every item that they fill. Does not block."""
        count = len(next(iter(rows.values())))
        taken = 0
        while taken < count:
            some = min(count - taken, ROWS_PER_ITEM - self._filled)
            for dtype, block in self._block.items():
                block[self._filled : self._filled + some] = rows[dtype][taken : taken + some]
            taken += some
            self._filled += some
            if self._filled == ROWS_PER_ITEM:
                self._observer(self._block)
                self._block = self._new_block()
                self._filled = 0

    def flush(self, timeout_s: float, pending_items: int = _PENDING_ITEMS) -> bool:
        """Waits until at most `pending_items` are unconfirmed by the server.

        Returns:
          False if that took longer than `timeout_s`: the rate limiter holds inserts back, or the server
          does not answer. Nothing is lost by it; call again.
        """
        try:
            self._writer.flush(pending_items, timeout_ms=round(timeout_s * 1000))
        except reverb_errors.DeadlineExceededError:
            return False
        return True

    def close(self, timeout_s: float) -> bool:
        """Confirms what is pending and closes; returns False if that took longer than `timeout_s`.

        Rows of a partly filled item are dropped; what could not be confirmed in time is dropped too.
        """
        confirmed = self.flush(timeout_s, pending_items=0)
        if confirmed:
            self._observer.close()
        return confirmed
