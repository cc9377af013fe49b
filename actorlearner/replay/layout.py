"""The interface of replay layouts, and the registered ones."""

from typing import Protocol

import reverb
import tensorflow as tf

from actorlearner.config.schema import Config
from actorlearner.environments.environment import Nest
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.packed import PackedLayout
from actorlearner.replay.trajectories import TrajectoryLayout
from actorlearner.replay.transition import StoredTransition
from actorlearner.replay.writer import ReplayWriter


class ReplayLayout(Protocol):
    """How items of the experience table store transitions.

    Attributes:
      table: the name of the experience table.
      transitions_per_item: transitions in one item.
    """

    table: str
    transitions_per_item: int

    @property
    def signature(self) -> Nest:
        """The item's nest of TensorSpecs, each with a leading dimension for the steps."""

    def writer(self, client: reverb.Client, environments: int) -> ReplayWriter:
        """Returns a writer for this number of environments; it connects at the first item."""

    def batches(
        self, items: tf.data.Dataset, batch_size: int, batch_size_per_replica: int
    ) -> tf.data.Dataset:
        """Turns a dataset of sampled items into a dataset of encoded batches.

        Args:
          items: elements with the `data` of one item, with the shapes of `item_specs`.
          batch_size: transitions in one train step, over all replicas.
          batch_size_per_replica: transitions in one element.
        """

    def decode(self, batch: Nest) -> StoredTransition:
        """Decodes an element of `batches` in the graph into tensors [batch_size_per_replica, ...]."""

    def transitions(self, items: Nest) -> StoredTransition:
        """Decodes complete items (tensors [items, ...]) into their transitions, in no particular order."""

    @property
    def item_specs(self) -> Nest:
        """The nest of TensorSpecs of a sampled item: `signature` with every dimension known.

        An item adds one step of its own and shares the others with earlier items.
        """


def make_layout(config: Config, specs: EnvironmentSpecs) -> ReplayLayout:
    """Returns the layout that `replay.layout` names, the same in every process."""
    packed = config.replay.layout == "packed"
    layout: type[PackedLayout] | type[TrajectoryLayout] = PackedLayout if packed else TrajectoryLayout
    return layout(specs, config.agent.n_step, config.agent.gamma)
