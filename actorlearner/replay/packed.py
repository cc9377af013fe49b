"""The packed layout: an item is a block of rows, and each row is a unit of experience (see `Experience`).

A row holds everything that a train step needs from a unit, so an item may span the end of an episode. Many
transitions share an item. A sequence, or a transition sampled by priority, has an item of its own.
"""

from typing import Any, NamedTuple

import reverb
import tensorflow as tf
import tree
from tf_agents.replay_buffers import reverb_utils

from actorlearner.agents.experience import Experience, Stored, StoredSequence, StoredTransition
from actorlearner.environments.environment import EnvSteps, Nest
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.item_size import rows_per_item
from actorlearner.replay.n_step import NStepTransitions
from actorlearner.replay.rows import ROWS, RowFormat
from actorlearner.replay.sequences import SequenceBuilder
from actorlearner.replay.writer import ReplayWriter

PACKED = "packed_experience"
"""The table of transitions."""

SEQUENCES = "sequences_every_"
"""The prefix of the name of a table of sequences; the stride in env steps follows."""

FRAGMENTS = "fragments_of_"
"""The prefix for a table of sequences that are consumed once, which do not overlap."""


class SampleInfo(NamedTuple):
    """How the units of a batch were sampled from a table with priorities.

    Attributes:
      key: uint64 [batch], Reverb's keys of the items.
      probability: float64 [batch], with which each unit was sampled.
      table_size: int64 [batch], the number of units in the table.
    """

    key: Any
    probability: Any
    table_size: Any


class _ItemStep(dict[str, Any]):
    """A block of rows with the interface of the steps that the observer takes."""

    def is_boundary(self) -> bool:
        """Returns False: rows are independent of each other, so the observer must never end an episode."""
        return False


class PackedWriter(ReplayWriter):
    """Gathers units into blocks of rows and writes each block as an item.

    All environments of an actor share the items, so the rows of an item are less correlated than consecutive
    steps of one environment.
    """

    def __init__(
        self,
        client: reverb.Client,
        table: str,
        rows: RowFormat,
        rows_per_item: int,
        units: NStepTransitions | SequenceBuilder,
    ) -> None:
        """Opens a writer; it connects at the first item."""
        observer = reverb_utils.ReverbAddTrajectoryObserver(client, table, sequence_length=1, stride_length=1)
        super().__init__([observer])
        self._observer = observer
        self._format = rows
        self._rows_per_item = rows_per_item
        self._units = units
        # One chunk per item: if two items shared a chunk, each sample of one would transfer both.
        self._writers[0].configure((ROWS,), num_keep_alive_refs=1, max_chunk_length=1)
        self._start_block()

    def write(self, steps: EnvSteps) -> None:
        """Adds env steps; writes an item whenever a block is full."""
        self._write_units(self._units.add(steps))

    def _write_leftovers(self) -> None:
        self._write_units(self._units.end())
        if self._filled:
            self._write_block()

    def _write_units(self, units: Stored | None) -> None:
        if units is None:
            return
        taken = 0
        while taken < len(units.policy_train_step):
            fitted = self._format.write(units, taken, self._records, self._filled)
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


class PackedLayout:
    """A ReplayLayout whose items have a single step: a block of rows."""

    def __init__(
        self,
        specs: EnvironmentSpecs,
        n_step: int,
        gamma: float,
        experience: Experience | None = None,
        policy_specs: tuple[Nest, Nest] = ((), ()),
        max_rows: int | None = None,
    ) -> None:
        """Derives the layout; the same arguments give the same layout in every process.

        Args:
          specs: of the environment.
          n_step: env steps of a transition.
          gamma: the agent's discount of one env step.
          experience: the agent's units of experience; None for transitions that are drawn uniformly.
          policy_specs: the specs of the collect policy's info and of its state, for sequences.
          max_rows: `replay.transitions_per_item`.
        """
        self.experience = experience or Experience()
        self._n_step = n_step
        self._gamma = gamma
        length, stride = self.experience.length, self.experience.stride
        if length is None:
            self.table = PACKED
            self.format = RowFormat(_transition_spec(specs))
            shared = self.experience.priorities is None
            rows = rows_per_item(self.format.width) if shared else 1
            self.env_steps_per_item = min(rows, max_rows or rows)
            self.samples_per_item = self.env_steps_per_item
        else:
            self.table = f"{FRAGMENTS if self.experience.iteration else SEQUENCES}{stride}"
            self.format = RowFormat(_sequence_spec(specs, length, *policy_specs))
            self.env_steps_per_item = stride
            # `learn.batch_size` counts sequences; in iterations, it counts their env steps.
            self.samples_per_item = 1 if self.experience.iteration is None else stride
        self._rows = 1 if length else self.env_steps_per_item

    @property
    def signature(self) -> dict[str, tf.TensorSpec]:
        """The spec of an item: uint8 [1, rows, bytes of a row]."""
        return {ROWS: tf.TensorSpec([1, self._rows, self.format.width], tf.uint8, ROWS)}

    @property
    def item_specs(self) -> dict[str, tf.TensorSpec]:
        """The same as `signature`: all its dimensions are known."""
        return self.signature

    def writer(self, client: reverb.Client, environments: int) -> PackedWriter:
        """Returns a writer for an actor's environments, which share its items."""
        units: NStepTransitions | SequenceBuilder
        if (length := self.experience.length) is None:
            units = NStepTransitions(self._n_step, self._gamma, environments)
        else:
            units = SequenceBuilder(length, self.experience.stride)
        return PackedWriter(client, self.table, self.format, self._rows, units)

    def batches(
        self, items: tf.data.Dataset, batch_size: int, batch_size_per_replica: int
    ) -> tf.data.Dataset:
        """Returns the dataset of (uint8 [batch_size_per_replica, bytes of a row], SampleInfo or ()).

        If items have n rows, each `batch_size` items make n batches, with one random row of each item in each
        batch. A batch is therefore distributed as if its transitions had been sampled independently and
        uniformly, at a fraction of the cost; only the n batches of the same items depend on each other.
        """

        def shuffle_rows(item: Any) -> tuple[tf.Tensor, Any]:
            rows = tf.reshape(item.data[ROWS], (batch_size * self._rows, self.format.width))
            order = tf.reshape(self._order(rows, batch_size), (-1, batch_size_per_replica))
            return tf.gather(rows, order), ()

        def one_row_items(item: Any) -> tuple[tf.Tensor, Any]:
            rows = tf.reshape(item.data[ROWS], (batch_size_per_replica, self.format.width))
            info = SampleInfo(item.info.key, item.info.probability, item.info.table_size)
            return rows, info if self.experience.priorities else ()

        if self._rows == 1:
            return items.batch(batch_size_per_replica, drop_remainder=True).map(one_row_items)
        return items.batch(batch_size, drop_remainder=True).map(shuffle_rows).unbatch()

    def _order(self, rows: tf.Tensor, count: int) -> tf.Tensor:
        """Returns indices into the rows of `count` items: int32 [rows per item, count], a batch per line."""
        rows_of_item = self._rows
        # Each item's rows get a random order. In the order of writing, consecutive batches would hold
        # consecutive env steps.
        permutations = tf.transpose(tf.argsort(tf.random.uniform([count, rows_of_item])))
        order = permutations + rows_of_item * tf.range(count)
        # A partly filled item has no row for some batches. There a random row of any item replaces it, so
        # that every transition is equally likely.
        is_used = self.format.is_used(rows)
        used = tf.where(is_used)[:, 0]
        replacements = tf.random.uniform([rows_of_item, count], maxval=tf.size(used), dtype=tf.int32)
        return tf.where(tf.gather(is_used, order), order, tf.cast(tf.gather(used, replacements), tf.int32))

    def decode(self, batch: tf.Tensor) -> Any:
        """Decodes a batch of `batches` in the graph."""
        return self.format.unpack(batch)


def _transition_spec(specs: EnvironmentSpecs) -> StoredTransition:
    scalar = tf.TensorSpec([], tf.float32)
    return StoredTransition(
        observation=specs.observation,
        action=specs.action,
        reward=scalar,
        discount=scalar,
        next_observation=specs.observation,
        policy_train_step=tf.TensorSpec([], tf.int64),
    )


def _sequence_spec(specs: EnvironmentSpecs, length: int, info: Nest, state: Nest) -> StoredSequence:
    def sequence(nest: Nest) -> Nest:
        return tree.map_structure(lambda spec: tf.TensorSpec([length, *spec.shape], spec.dtype), nest)

    number, flag = tf.TensorSpec([length], tf.float32), tf.TensorSpec([length], tf.bool)
    return StoredSequence(
        observation=sequence(specs.observation),
        action=sequence(specs.action),
        reward=number,
        discount=number,
        next_observation=sequence(specs.observation),
        first=flag,
        last=flag,
        valid=flag,
        policy_info=sequence(info),
        policy_state=state,
        policy_train_step=tf.TensorSpec([], tf.int64),
        policy_generation=tf.TensorSpec([], tf.int64),
    )
