"""`learner`: train steps a second over Reverb, beside one fixed batch in memory and the stock learner."""

import dataclasses
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import reverb
import tensorflow as tf

from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.learning.group import LearnerGroup
from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.process.stop import Stop
from actorlearner.records.summaries import Summaries
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import make_layout
from actorlearner.roles.learner import make_seeded_agent
from actorlearner.variables.publisher import Publisher
from benchmarks.support import rounds, servers, stock, threads
from benchmarks.support.filling import fill
from benchmarks.support.halfcheetah import configuration
from benchmarks.support.report import Row

_FIXED, _OURS, _STOCK, _AS_SHIPPED = "fixed batch", "ours", "stock", "stock as it ships"
_BFLOAT16 = ", bfloat16"
"""Ends the name of a learner that does not calculate in float32."""


def run(env_steps: int = 20_000, turns: int = 13, round_s: float = 2.0) -> tuple[list[Row], dict[str, Any]]:
    """Measures all in turn; the server is another process on the same machine.

    Args:
      env_steps: in replay.
      turns: rounds.
      round_s: seconds of each measurement.
    """
    config = configuration()
    set_threads = threads.like_a_learner(config)
    with servers.replay_server() as server, tempfile.TemporaryDirectory() as directory:
        specs = fill(server, env_steps)
        learners = _learners(config, specs, server.address, Path(directory))
        measurements = {
            name: functools.partial(rounds.rate, learner.step, round_s, learner.train_steps)
            for name, learner in learners.items()
        }
        details = rounds.in_turn(measurements, turns)

    def row(beside: str, to: str, goal: float, settings: str, ours: str = _OURS) -> Row:
        what = f"train steps a second over Reverb; ratio to {to}"
        return Row("learner", what, *rounds.compared(details, ours, beside), goal, True, settings)

    train_steps, interval = config.learn.train_steps_per_call, config.learn.publish_interval
    common = f"{train_steps} train steps a call, publishing every {interval}, {set_threads}"
    shipped = f"ours: {common}; stock: 1 train step a call, publishing after each, same threads"
    return [
        row(_FIXED, "one fixed batch", 0.97, f"both: {common}"),
        row(_FIXED + _BFLOAT16, "one fixed batch, in bfloat16", 0.97, f"both: {common}", _OURS + _BFLOAT16),
        row(_STOCK, "the stock learner", 3, f"both: {common}"),
        row(_AS_SHIPPED, "the stock learner as its example runs it", 3, shipped),
    ], details


def _learners(
    config: Config, specs: EnvironmentSpecs, address: str, directory: Path
) -> dict[str, "Training | stock.TrainJob"]:
    """Makes the learners, each with its own agent; each has taken its first train steps."""
    learners: dict[str, Training | stock.TrainJob] = {}
    for precision, end in (("float32", ""), ("bfloat16", _BFLOAT16)):
        learn = dataclasses.replace(config.learn, precision=precision)
        in_precision = dataclasses.replace(config, learn=learn)
        for name, dataset in ((_FIXED, fixed_batch), (_OURS, replay)):
            batches = functools.partial(dataset, in_precision, specs, address)
            learner = Training(in_precision, specs, directory / f"{name} {precision}", batches)
            learner.publish(Publisher(reverb.Client(address), learner.parts), learn.publish_interval)
            learners[name + end] = learner
    as_ours = (config.learn.train_steps_per_call, config.learn.publish_interval)
    for name, settings in ((_STOCK, as_ours), (_AS_SHIPPED, (1, 1))):
        parts = make_agent(config, specs)
        job = (parts.agent, parts.train_step, address, directory / name, config.learn.batch_size)
        learners[name] = stock.TrainJob(*job, *settings)
        learners[name].step()  # Traces the graph.
    return learners


class Training:
    """Training as the learner role runs it, some train steps a call."""

    def __init__(
        self, config: Config, specs: EnvironmentSpecs, directory: Path, dataset: Callable[[], tf.data.Dataset]
    ) -> None:
        """Makes an agent, and takes its first train steps on `dataset`, which traces the graph."""
        group = LearnerGroup(tf.distribute.get_strategy(), Stop())
        self.parts = make_seeded_agent(config, specs, group)
        self.train_steps = config.learn.train_steps_per_call
        self._graph = TrainingGraph(
            self.parts,
            dataset,
            make_layout(config, specs),
            config.learn,
            group=group,
            writer=Summaries(directory).writer,
        )
        self._publisher: Publisher | None = None
        self._since_publication = 0
        self._publish_interval = 0
        self.step()

    def publish(self, publisher: Publisher | None, interval: int) -> None:
        """From now on publishes the policy variables every `interval` train steps; with None, never."""
        self._publisher, self._publish_interval, self._since_publication = publisher, interval, 0

    def step(self) -> None:
        """Calls the training graph once; publishes if the interval is over."""
        self._graph.train(self.train_steps)
        self._since_publication += self.train_steps
        if self._publisher is not None and self._since_publication >= self._publish_interval:
            self._publisher.publish()
            self._since_publication = 0


def replay(config: Config, specs: EnvironmentSpecs, address: str) -> tf.data.Dataset:
    """Returns an endless dataset of batches from replay."""
    batch = config.learn.batch_size
    return experience_dataset([address], make_layout(config, specs), batch, batch)


def fixed_batch(config: Config, specs: EnvironmentSpecs, address: str) -> tf.data.Dataset:
    """Returns an endless dataset of the first batch from replay."""
    return replay(config, specs, address).take(1).cache().repeat()
