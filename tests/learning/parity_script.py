"""Trains small agents on fixed data under the strategy of argv[1]; writes what came of it to argv[2].

Run by test_strategy_parity, each strategy in processes of its own, because logical devices can be made
only before TensorFlow is used. With more than one replica each agent is trained a second time, stopped and
resumed in between.

A learner of a group has TF_CONFIG in its environment. It takes its part of the data, and begins with other
variables than the chief, who alone saves and restores.
"""

import dataclasses
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_probability.python.internal import samplers
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.agents.experience import StoredTransition
from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.agents.sac import SacConfig
from actorlearner.config.schema import AgentConfig, Config, LearnConfig
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.learning import group as learning_group
from actorlearner.learning.checkpoint import LearnerCheckpoint
from actorlearner.learning.group import LearnerGroup, join_group
from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.process.stop import Stop
from actorlearner.replay.packed import PackedLayout
from tests.support.processes import wait_for
from tests.support.training import (
    DQN,
    LAYOUT,
    SPECS,
    all_variables,
    fixed_rows,
    make_training_graph,
    packed,
    with_info,
)

BATCH = 12
TRAIN_STEPS = 20
STOPPED_AT = 4

Values = dict[str, np.ndarray]


def sac_specs() -> EnvironmentSpecs:
    """Those of Pendulum."""
    observation = tf.TensorSpec([3], tf.float32, "observation")
    action = tensor_spec.BoundedTensorSpec([1], tf.float32, -2, 2, "action")
    return EnvironmentSpecs(observation, action, time_step.time_step_spec(observation))


def sac_rows(count: int) -> np.ndarray:
    """As `fixed_rows`, for SAC."""
    draws = np.random.default_rng(1).normal(size=(count, 8)).astype(np.float32)
    stored = StoredTransition(
        observation=draws[:, :3],
        action=np.clip(draws[:, 3:4], -2, 2),
        reward=draws[:, 4],
        discount=(np.arange(count) % 5 != 0).astype(np.float32),
        next_observation=draws[:, 5:8],
        policy_train_step=np.arange(count) % 11 - 1,
    )
    return packed(SAC_LAYOUT.format, stored)


def no_noise(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = tf.float32, **_: Any) -> tf.Tensor:
    """In place of TensorFlow Probability's normal numbers: SAC's losses sample actions."""
    return tf.zeros(shape, dtype) + mean


def end_failed(problem: str) -> None:
    """In place of a role's: another learner has failed, while this one is blocked in TensorFlow."""
    print(problem, flush=True)
    os._exit(1)


def sac_variables(parts: AgentParts) -> dict[str, tf.Variable]:
    """As `all_variables`, for SAC; an optimiser's own list is in the order of creation."""
    agent = parts.agent
    critics = [*agent._critic_network_1.variables, *agent._critic_network_2.variables]
    targets = [*agent._target_critic_network_1.variables, *agent._target_critic_network_2.variables]
    found = {f"target/{i}": variable for i, variable in enumerate(targets)} | {"train_step": parts.train_step}
    for name, trained, optimizer in (
        ("critic", critics, agent._critic_optimizer),
        ("actor", agent._actor_network.variables, agent._actor_optimizer),
        ("alpha", [agent._log_alpha], agent._alpha_optimizer),
    ):
        found[f"{name}/iterations"] = optimizer.iterations
        for i, variable in enumerate(trained):
            found[f"{name}/{i}"] = variable
            found |= {
                f"{name}/{slot}/{i}": optimizer.get_slot(variable, slot)
                for slot in optimizer.get_slot_names()
            }
    return found


@dataclasses.dataclass
class Kind:
    """An agent, and what it is trained on."""

    config: AgentConfig
    specs: EnvironmentSpecs
    layout: PackedLayout
    rows: Callable[[int], np.ndarray]
    variables: Callable[[AgentParts], dict[str, tf.Variable]]


SAC_LAYOUT = PackedLayout(sac_specs(), n_step=1, gamma=0.99)
SAC = SacConfig(actor_layers=[8], critic_joint_layers=[8], target_update_tau=0.1, actor_learning_rate=0.01)
KINDS = {
    "dqn": Kind(DQN, SPECS, LAYOUT, fixed_rows, all_variables),
    "sac": Kind(SAC, sac_specs(), SAC_LAYOUT, sac_rows, sac_variables),
}


class Training:
    """Makes learners of an agent in one group, all with the same data."""

    def __init__(self, group: LearnerGroup, kind: Kind, directory: Path) -> None:
        self.group = group
        self.kind = kind
        self.replicas = group.strategy.num_replicas_in_sync
        self.directory = directory

    def parts(self, seed: int = 5) -> AgentParts:
        tf.keras.utils.set_random_seed(seed + self.group.index)  # Keras draws from Python, not TensorFlow.
        with self.group.strategy.scope():
            return make_agent(Config(agent=self.kind.config), self.kind.specs)

    def graph(self, parts: AgentParts, taken: int = 0, last: int = TRAIN_STEPS) -> TrainingGraph:
        """A training graph of the data that follows after so many train steps, and comes until the last."""

        def dataset() -> tf.data.Dataset:
            # As many rows as ever in one train step: an element is what one replica gets.
            elements = tf.data.Dataset.from_tensor_slices(self.kind.rows(BATCH * TRAIN_STEPS))
            elements = elements.batch(BATCH // self.replicas, drop_remainder=True).skip(taken * self.replicas)
            own = elements.shard(self.group.size, self.group.index)
            if last < TRAIN_STEPS:
                own = own.take(last).concatenate(endless_wait(own.element_spec))
            return with_info(own.repeat())

        return make_training_graph(self.directory, parts, dataset, self.kind.layout, self.group)

    def checkpoint(self, parts: AgentParts) -> LearnerCheckpoint:
        return LearnerCheckpoint(self.directory / "checkpoints", parts)

    def run(self, graph: TrainingGraph, iterations: int) -> Any:
        self.group.begin_call()
        loss = graph.train(iterations).loss
        assert not self.group.stopped
        return float(loss)

    def values(self, parts: AgentParts) -> Values:
        return {name: tf.convert_to_tensor(v).numpy() for name, v in self.kind.variables(parts).items()}


def main(name: str, output: str) -> None:
    samplers.normal = no_noise
    learning_group.end_failed = end_failed
    learn = LearnConfig(strategy=name, batch_size=BATCH)
    group = join_group(Config(learn=learn), Stop())
    assert group is not None
    results: Values = {}
    with group:
        for name, kind in KINDS.items():
            with tempfile.TemporaryDirectory() as directory:
                results |= prefixed(name, train(Training(group, kind, Path(directory))))
        for name, kind in KINDS.items() if group.size > 1 else ():
            with tempfile.TemporaryDirectory() as directory:
                results |= prefixed(f"{name}/starved", starved(Training(group, kind, Path(directory))))
    np.savez(output, **results)
    os._exit(0)


def train(training: Training) -> Values:
    parts = training.parts()
    initial = training.values(parts)
    checkpoint = training.checkpoint(parts)
    graph = training.graph(parts)
    losses = [training.run(graph, n) for n in (1, 1, 2)]
    stopped = training.values(parts)
    if training.group.index == 0:
        checkpoint.save()
    losses.append(training.run(graph, TRAIN_STEPS - STOPPED_AT))
    statistics = graph.take_statistics()
    copies = {
        name: np.stack(
            [copy.numpy() for copy in training.group.strategy.experimental_local_results(variable)]
        )
        for name, variable in training.kind.variables(parts).items()
    }
    return {
        "replicas": np.array(training.replicas),
        "losses": np.array(losses),
        "staleness": np.array([statistics.staleness_mean, statistics.staleness_max]),
        **prefixed("initial", initial),
        **prefixed("stopped", stopped),
        **prefixed("final", training.values(parts)),
        **prefixed("copies", copies),
        **prefixed("resumed", resumed(training) if training.replicas > 1 else {}),
    }


def resumed(training: Training) -> Values:
    """As the learner role does it: what a learner of a group begins with, the chief tells all."""
    parts = training.parts(seed=100)
    checkpoint = training.checkpoint(parts)
    if training.group.size == 1:
        checkpoint.restore()
    graph = training.graph(parts, STOPPED_AT)
    if training.group.index == 0:
        if training.group.size > 1:
            checkpoint.restore()
        checkpoint.check_restored()
    else:
        for variable in training.kind.variables(parts).values():
            variable.assign(tf.zeros_like(variable) - 1)
    training.group.broadcast(parts.agent, parts.train_step)
    training.run(graph, TRAIN_STEPS - STOPPED_AT)
    return training.values(parts)


def starved(training: Training) -> Values:
    """The variables while the chief has the data of the next train step, and another learner does not."""
    parts = training.parts()
    graph = training.graph(parts, last=TRAIN_STEPS if training.group.index == 0 else STOPPED_AT)
    # Blocked for good: main ends the process with it.
    threading.Thread(target=lambda: training.run(graph, TRAIN_STEPS), daemon=True).start()
    wait_for(lambda: graph.train_step.numpy() >= STOPPED_AT, "the last data")
    time.sleep(1.0)  # Nothing tells that what must not happen now has not happened.
    assert graph.waiting_for_data
    return training.values(parts)


def endless_wait(element: tf.TensorSpec) -> tf.data.Dataset:
    """Elements that never come."""

    def wait() -> Iterator[np.ndarray]:
        threading.Event().wait()
        yield np.zeros(element.shape, element.dtype.as_numpy_dtype)

    return tf.data.Dataset.from_generator(wait, output_signature=element)


def prefixed(prefix: str, values: Values) -> Values:
    return {f"{prefix}/{name}": value for name, value in values.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
