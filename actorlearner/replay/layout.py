"""What a replay layout must provide, and which there are."""

from typing import Any, Protocol

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
    """How transitions lie in the items of the experience table.

    Attributes:
      table: the name of that table.
      transitions_per_item: how many transitions one item holds.
    """

    table: str
    transitions_per_item: int

    @property
    def signature(self) -> Nest:
        """The nest of TensorSpecs of an item, with a leading dimension of its steps."""

    def writer(self, client: reverb.Client, environments: int) -> ReplayWriter:
        """Opens a writer for the env steps of so many environments; it connects at the first item."""

    def batches(
        self, items: tf.data.Dataset, batch_size: int, batch_size_per_replica: int
    ) -> tf.data.Dataset:
        """Turns a dataset of sampled items into one of batches that are still encoded.

        Args:
          items: elements with the `data` of one item, shaped as `item_specs` says.
          batch_size: transitions in one train step, over all replicas.
          batch_size_per_replica: transitions in one element.
        """

    def decode(self, batch: Nest) -> StoredTransition:
        """Decodes an element of `batches` in the graph into tensors [batch_size_per_replica, ...]."""

    def transitions(self, items: Nest) -> StoredTransition:
        """Decodes whole items (tensors [items, ...]) into the transitions that they hold, in no order."""

    @property
    def item_specs(self) -> Nest:
        """The nest of TensorSpecs of a sampled item; like `signature`, but with every dimension known.

        An item brings one step of its own; the others it shares with the items before.
        """


def make_layout(config: Config, specs: EnvironmentSpecs) -> ReplayLayout:
    """Returns the layout that `replay.layout` names, the same in every process."""
    n, gamma = config.agent.n_step, config.agent.gamma
    layouts: dict[str, Any] = {"packed": PackedLayout, "trajectory": TrajectoryLayout}
    layout: ReplayLayout = layouts[config.replay.layout](specs, n, gamma)
    return layout
