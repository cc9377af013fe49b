"""The interface of replay layouts, and the registered ones."""

from typing import Protocol

import reverb
import tensorflow as tf

from actorlearner.agents.experience import Experience, Stored
from actorlearner.agents.registry import find_builder
from actorlearner.config.schema import Config
from actorlearner.environments.environment import Nest
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.packed import PackedLayout
from actorlearner.replay.trajectories import TrajectoryLayout
from actorlearner.replay.writer import ReplayWriter


class ReplayLayout(Protocol):
    """How items of the experience table store transitions.

    Attributes:
      experience: the agent's units of experience, and how they are used.
      table: the name of the experience table.
      env_steps_per_item: env steps that one item adds: its transitions; for sequences, the stride.
      samples_per_item: samples that a sampled item counts as, in the unit of `learn.batch_size`.
    """

    experience: Experience
    table: str
    env_steps_per_item: int
    samples_per_item: int

    @property
    def signature(self) -> Nest:
        """The item's nest of TensorSpecs, each with a leading dimension for the steps."""

    def writer(self, client: reverb.Client, environments: int) -> ReplayWriter:
        """Returns a writer for this number of environments; it connects at the first item."""

    def batches(
        self, items: tf.data.Dataset, batch_size: int, batch_size_per_replica: int
    ) -> tf.data.Dataset:
        """Turns a dataset of sampled items into a dataset of (encoded batch, packed.SampleInfo or ()).

        Args:
          items: elements with the `data` of one item, with the shapes of `item_specs`.
          batch_size: units in one train step of this learner, over its replicas.
          batch_size_per_replica: units in one element.
        """

    def decode(self, batch: Nest) -> Stored:
        """Decodes an encoded batch in the graph into tensors [batch_size_per_replica, ...]."""

    @property
    def item_specs(self) -> Nest:
        """The nest of TensorSpecs of a sampled item: `signature` with every dimension known."""


def make_layout(config: Config, specs: EnvironmentSpecs) -> ReplayLayout:
    """Returns the layout of the agent's experience, the same in every process.

    Raises:
      ConfigurationError: the algorithm does not exist, or cannot act in an environment with these specs.
    """
    agent = config.agent
    if config.replay.layout == "trajectory":
        return TrajectoryLayout(specs, agent.n_step, agent.gamma)
    builder = find_builder(agent.name)
    policy_specs = builder.policy_specs(agent, specs)
    experience, max_rows = builder.experience(agent), config.replay.transitions_per_item
    return PackedLayout(specs, agent.n_step, agent.gamma, experience, policy_specs, max_rows)
