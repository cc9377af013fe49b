"""Trains an agent on fixed data under the strategy of argv[1]; writes what came of it to argv[2].

argv[3] is the agent, see `AGENTS`. A learner of a group has TF_CONFIG in its environment, takes its part of the
data, and begins with other variables than the chief, who alone saves and restores.

Run by test_strategy_parity, each strategy in a process of its own, because logical devices can be made
only before TensorFlow is used. With more than one replica it trains a second time, stopped and resumed in
between.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.devices import make_strategy
from actorlearner.learning.checkpoint import LearnerCheckpoint
from actorlearner.learning.measured_learner import MeasuredLearner
from tests.support.training import all_variables, fixed_dataset, make_learner, make_parts, values_of

BATCH = 12
TRAIN_STEPS = 10
STOPPED_AT = 4


class Training:
    """Makes learners under one strategy, all with the same data."""

    def __init__(self, strategy: tf.distribute.Strategy, directory: Path) -> None:
        self.strategy = strategy
        self.replicas = strategy.num_replicas_in_sync
        self.directory = directory

    def parts(self) -> AgentParts:
        with self.strategy.scope():
            return make_parts()

    def learner(self, parts: AgentParts, taken: int = 0) -> MeasuredLearner:
        """A learner of the data that follows after so many train steps."""
        # As many rows as ever in one train step: an element is what one replica gets.
        element, elements, skipped = (
            BATCH // self.replicas,
            TRAIN_STEPS * self.replicas,
            taken * self.replicas,
        )
        return make_learner(
            self.directory, parts, lambda: fixed_dataset(element, elements, skipped), self.strategy
        )

    def checkpoint(self, parts: AgentParts) -> LearnerCheckpoint:
        return LearnerCheckpoint(self.directory / "checkpoints", parts)


def main(name: str, output: str) -> None:
    strategy = make_strategy(name, BATCH)
    with tempfile.TemporaryDirectory() as directory:
        np.savez(output, **train(Training(strategy, Path(directory))))


def train(training: Training) -> dict[str, object]:
    parts = training.parts()
    initial = values_of(parts)
    checkpoint = training.checkpoint(parts)
    learner = training.learner(parts)
    losses = [float(learner.run(iterations=n).loss) for n in (1, 1, 2)]
    checkpoint.save()
    losses.append(float(learner.run(iterations=TRAIN_STEPS - STOPPED_AT).loss))
    statistics = learner.take_statistics()
    copies = {
        name: np.stack([copy.numpy() for copy in training.strategy.experimental_local_results(variable)])
        for name, variable in all_variables(parts).items()
    }
    return {
        "replicas": training.replicas,
        "devices": len(tf.config.list_logical_devices("CPU")),
        "losses": losses,
        "staleness": [statistics.staleness_mean, statistics.staleness_max],
        **prefixed("initial", initial),
        **prefixed("final", values_of(parts)),
        **prefixed("copies", copies),
        **prefixed("resumed", resumed(training) if training.replicas > 1 else {}),
    }


def resumed(training: Training) -> dict[str, np.ndarray]:
    parts = training.parts()
    checkpoint = training.checkpoint(parts)
    checkpoint.restore()
    learner = training.learner(parts, STOPPED_AT)
    checkpoint.restore()  # As the learner role does: making the learner initialises the agent again.
    learner.run(iterations=TRAIN_STEPS - STOPPED_AT)
    return values_of(parts)


def prefixed(prefix: str, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{prefix}/{name}": value for name, value in values.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
