"""`learner`: train steps a second over Reverb, beside one fixed batch in memory and the stock learner."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.files.summaries import Summaries
from actorlearner.learning.measured_learner import MeasuredLearner
from actorlearner.machine.devices import share_cpus
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import make_layout
from benchmarks import rounds
from benchmarks.filling import fill
from benchmarks.halfcheetah import configuration
from benchmarks.report import Row
from benchmarks.servers import replay_server
from benchmarks.stock import TrainJob

_ENV_STEPS = 20_000
_ROUNDS = 15
_ROUND_S = 2.0


def run() -> tuple[list[Row], dict[str, Any]]:
    """Measures the three in turn; the server is another process on the same machine."""
    details: dict[str, Any] = {}
    config = configuration()
    share_cpus(config.learn.intra_op_threads)
    with replay_server() as server, tempfile.TemporaryDirectory() as directory:
        specs = fill(server, _ENV_STEPS)
        ours = training(
            config, specs, Path(directory) / "ours", lambda: _replay(config, specs, server.address)
        )
        fixed = training(
            config, specs, Path(directory) / "fixed", lambda: fixed_batch(config, specs, server.address)
        )
        parts = make_agent(config, specs)
        stock = TrainJob(
            parts.agent, parts.train_step, server.address, Path(directory) / "stock", config.learn.batch_size
        )
        stock.step()  # Traces the graph.
        values = rounds.medians(
            {
                "fixed batch": lambda: rounds.rate(fixed.step, _ROUND_S, fixed.train_steps),
                "ours": lambda: rounds.rate(ours.step, _ROUND_S, ours.train_steps),
                "stock": lambda: rounds.rate(stock.step, _ROUND_S),
            },
            _ROUNDS,
            details,
        )
    what = "train steps a second over Reverb"
    rate = values["ours"]
    return [
        Row(
            "learner",
            f"{what}; ratio to one fixed batch",
            values["fixed batch"],
            rate,
            rounds.ratio(details, "ours", "fixed batch"),
            0.97,
            True,
        ),
        Row(
            "learner",
            f"{what}; ratio to the stock learner",
            values["stock"],
            rate,
            rounds.ratio(details, "ours", "stock"),
            3,
            True,
        ),
    ], details


class Training:
    """A learner as the learner role runs it, some train steps a call."""

    def __init__(self, learner: MeasuredLearner, train_steps: int, parts: AgentParts) -> None:
        """Takes the first train steps, which trace the graph."""
        self.learner = learner
        self.train_steps = train_steps
        self.parts = parts
        self.step()

    def step(self) -> None:
        """Calls the training graph once."""
        self.learner.run(iterations=self.train_steps)


def training(
    config: Config, specs: EnvironmentSpecs, directory: Path, dataset: Callable[[], tf.data.Dataset]
) -> Training:
    """Makes an agent and a learner of it that trains on `dataset`."""
    parts = make_agent(config, specs)
    learner = MeasuredLearner(
        Summaries(directory).writer,
        parts,
        dataset,
        make_layout(config, specs).decode,
        summary_interval=config.learn.summary_interval,
        strategy=tf.distribute.get_strategy(),
    )
    return Training(learner, config.learn.train_steps_per_call, parts)


def _replay(config: Config, specs: EnvironmentSpecs, address: str) -> tf.data.Dataset:
    batch = config.learn.batch_size
    return experience_dataset([address], make_layout(config, specs), batch, batch)


def fixed_batch(config: Config, specs: EnvironmentSpecs, address: str) -> tf.data.Dataset:
    """The first batch from replay, for ever."""
    return _replay(config, specs, address).take(1).cache().repeat()
