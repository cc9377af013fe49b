"""Training on fixed data: a small agent, batches that are always the same, and a training graph of both."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.experience import StoredTransition
from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.config.schema import Config, LearnConfig
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.learning.group import LearnerGroup
from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.process.stop import Stop
from actorlearner.records.summaries import Summaries
from actorlearner.replay.packed import PackedLayout
from actorlearner.replay.rows import RowFormat

ACTIONS = 3
OBSERVATION = tf.TensorSpec([4], tf.float32, "observation")
SPECS = EnvironmentSpecs(
    OBSERVATION,
    tensor_spec.BoundedTensorSpec([], tf.int64, 0, ACTIONS - 1, "action"),
    time_step.time_step_spec(OBSERVATION),
)
LAYOUT = PackedLayout(SPECS, n_step=1, gamma=0.99)

DQN = DqnConfig(
    layers=[8],
    learning_rate=0.01,
    target_update_period=3,
    target_update_tau=0.5,  # So that the target network differs from the trained one.
    epsilon_start=0.0,
    epsilon_end=0.0,
)
"""Its train step draws no random numbers."""


def make_parts(agent: DqnConfig = DQN) -> AgentParts:
    """The agent, always with the same initial variables."""
    tf.keras.utils.set_random_seed(5)  # Keras initialisers draw from Python, not from TensorFlow.
    return make_agent(Config(agent=agent), SPECS)


def all_variables(parts: AgentParts) -> dict[str, tf.Variable]:
    """All variables that training changes, by name: both networks, the optimiser's state, the train step."""
    agent = parts.agent
    optimizer = agent._optimizer
    trained = agent._q_network.variables
    # By name, for the order of an optimiser's own list is that of their creation.
    slots = {
        f"optimizer/{slot}/{i}": optimizer.get_slot(variable, slot)
        for slot in optimizer.get_slot_names()
        for i, variable in enumerate(trained)
    }
    return {
        **{f"trained/{i}": variable for i, variable in enumerate(trained)},
        **{f"target/{i}": variable for i, variable in enumerate(agent._target_q_network.variables)},
        "optimizer/iterations": optimizer.iterations,
        **slots,
        "train_step": parts.train_step,
    }


def values_of(parts: AgentParts) -> dict[str, np.ndarray]:
    return {name: tf.convert_to_tensor(v).numpy() for name, v in all_variables(parts).items()}


def packed(rows: RowFormat, transitions: StoredTransition) -> np.ndarray:
    """The rows of a batch of transitions, as bytes."""
    records = rows.unused(len(transitions.reward))
    assert rows.write(transitions, 0, records, 0) == len(records)
    return rows.as_bytes(records)


def fixed_rows(count: int) -> np.ndarray:
    """The first `count` transitions of an endless sequence that is always the same, as rows."""
    random = np.random.default_rng(0)
    draws = random.normal(size=(count, 2 * OBSERVATION.shape[0] + 1)).astype(np.float32)
    return packed(
        LAYOUT.format,
        StoredTransition(
            observation=draws[:, :4],
            action=np.arange(count) % ACTIONS,
            reward=draws[:, 8],
            discount=(np.arange(count) % 5 != 0).astype(np.float32),
            next_observation=draws[:, 4:8],
            policy_train_step=np.arange(count) % 11 - 1,
        ),
    )


def fixed_dataset(element: int, elements: int, skipped: int = 0) -> tf.data.Dataset:
    """Elements `skipped` to `elements` of those rows, so many in each."""
    dataset = tf.data.Dataset.from_tensor_slices(fixed_rows(element * elements))
    return with_info(dataset.batch(element, drop_remainder=True).skip(skipped))


def with_info(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset in the form that learners take."""
    return dataset.map(lambda rows: (rows, ()))


def layout_with(decode: Callable[[Any], Any]) -> PackedLayout:
    """LAYOUT, but with another `decode`."""
    layout = copy.copy(LAYOUT)
    layout.decode = decode
    return layout


def make_training_graph(
    directory: Path,
    parts: AgentParts,
    dataset: Callable[[], tf.data.Dataset],
    layout: PackedLayout = LAYOUT,
    group: LearnerGroup | None = None,
    xla: bool = False,
) -> TrainingGraph:
    """A training graph as the learner role makes it."""
    return TrainingGraph(
        parts,
        dataset,
        layout,
        LearnConfig(xla=xla),
        group=group or LearnerGroup(tf.distribute.get_strategy(), Stop()),
        writer=Summaries(directory).writer,
    )
