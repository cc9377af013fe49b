"""Writes transitions in the packed layout."""

from typing import Any

import reverb
from tf_agents.replay_buffers import reverb_utils

from actorlearner.environments.env_steps import EnvSteps
from actorlearner.replay.n_step import NStepTransitions
from actorlearner.replay.rows import ROWS, RowFormat
from actorlearner.replay.transition import StoredTransition
from actorlearner.replay.writer import ReplayWriter


class _ItemStep(dict[str, Any]):
    """A block of rows in the form in which the observer takes a step."""

    def is_boundary(self) -> bool:
        """Always False: a row needs no neighbour, so no row ends anything."""
        return False


class PackedWriter(ReplayWriter):
    """Gathers transitions into blocks of rows and writes each as an item.

    Transitions of all the environments of an actor share the items, so that the rows of an item are less
    correlated than consecutive steps of one environment.
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
        # One chunk an item: a chunk shared by two items would travel whole with either of them.
        self._writers[0].configure((ROWS,), num_keep_alive_refs=1, max_chunk_length=1)
        self._start_block()

    def write(self, steps: EnvSteps) -> None:
        """See ReplayWriter."""
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
        # Each item gets arrays of its own: the writer may still read them after they are handed over.
        self._records = self._format.unused(self._rows_per_item)
        self._filled = 0
