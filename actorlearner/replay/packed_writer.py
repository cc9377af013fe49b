"""Writes transitions in the packed layout."""

from typing import Any

import reverb
from tf_agents.replay_buffers import reverb_utils

from actorlearner.environments.environment import EnvSteps
from actorlearner.replay.n_step import NStepTransitions
from actorlearner.replay.rows import ROWS, RowFormat
from actorlearner.replay.transition import StoredTransition
from actorlearner.replay.writer import ReplayWriter


class _ItemStep(dict[str, Any]):
    """A block of rows with the interface of the steps that the observer takes."""

    def is_boundary(self) -> bool:
        """Returns False: rows are independent of each other, so no episode ends here for the observer."""
        return False


class PackedWriter(ReplayWriter):
    """Gathers transitions into blocks of rows and writes each block as an item.

    All environments of an actor share the items, so the rows of an item are less correlated than consecutive
    steps of one environment.
    """

    def __init__(
        self,
        client: reverb.Client,
        table: str,
        rows: RowFormat,
        rows_per_item: int,
        transitions: NStepTransitions,
    ) -> None:
        """Opens a writer; it connects at the first item."""
        observer = reverb_utils.ReverbAddTrajectoryObserver(client, table, sequence_length=1, stride_length=1)
        super().__init__([observer])
        self._observer = observer
        self._format = rows
        self._rows_per_item = rows_per_item
        self._transitions = transitions
        # One chunk per item: a chunk that two items share would be sent completely with each of them.
        self._writers[0].configure((ROWS,), num_keep_alive_refs=1, max_chunk_length=1)
        self._start_block()

    def write(self, steps: EnvSteps) -> None:
        """Adds env steps; writes an item whenever a block is full."""
        self._write_transitions(self._transitions.add(steps))

    def _write_rest(self) -> None:
        self._write_transitions(self._transitions.end())
        if self._filled:
            self._write_block()

    def _write_transitions(self, transitions: StoredTransition | None) -> None:
        if transitions is None:
            return
        taken = 0
        while taken < len(transitions.reward):
            fitted = self._format.write(transitions, taken, self._records, self._filled)
            taken += fitted
            self._filled += fitted
            if self._filled == self._rows_per_item:
                self._write_block()

    def _write_block(self) -> None:
        self._observer(_ItemStep({ROWS: self._format.as_bytes(self._records)}))
        self._start_block()

    def _start_block(self) -> None:
        # Each item gets its own arrays: Reverb's writer may still read them later.
        self._records = self._format.unused(self._rows_per_item)
        self._filled = 0
