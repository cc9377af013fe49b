"""Where the learner's time outside of the training graph goes."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from actorlearner.config.schema import Config, EvaluateConfig, LearnConfig
from actorlearner.learning.group import Group
from actorlearner.learning.measured_learner import DataStatistics
from actorlearner.learning.outputs import Outputs
from actorlearner.learning.training_loop import TrainingLoop
from actorlearner.lifecycle.start_up import StartUp
from actorlearner.lifecycle.stop import Stop
from tests.support.training import fixed_dataset, make_learner, make_parts

_STEPS = 10
_S = 0.5
"""Much longer than a train step of a tiny network."""


class SlowOutputs(Outputs):
    """Publishing or saving takes long; the fractions of the records are kept."""

    def __init__(self, slow: str) -> None:
        self._slow = slow
        self.fractions: list[Mapping[str, float]] = []

    def _take_long(self, what: str) -> None:
        if what == self._slow:
            threading.Event().wait(_S)

    def publish(self) -> None:
        self._take_long("publish")

    def save(self) -> bool:
        self._take_long("save")
        return True

    def record(self, loss: Any, data: DataStatistics, fractions: Mapping[str, float]) -> None:
        self.fractions.append(fractions)


@pytest.mark.parametrize(
    ("slow", "longest"), [("publish", "publish_fraction"), ("save", "overhead_fraction"), ("", "")]
)
def test_what_is_slow_takes_the_time(slow: str, longest: str, tmp_path: Path) -> None:
    learn = LearnConfig(train_steps=_STEPS, batch_size=6, publish_interval=1, checkpoint_interval=1)
    config = Config(learn=learn, evaluate=EvaluateConfig(interval=1_000))
    learner = make_learner(tmp_path, make_parts(), lambda: fixed_dataset(6, _STEPS))
    outputs = SlowOutputs(slow)
    stop = Stop()
    group = Group(tf.distribute.get_strategy(), stop)
    TrainingLoop(config, group, learner, outputs, stop, StartUp()).run()
    last = outputs.fractions[-1]  # The first has the first call, which optimises the graph.
    assert set(last) == {"publish_fraction", "overhead_fraction"}
    for key, fraction in last.items():
        assert (fraction > 0.6) == (key == longest), last
    assert sum(last.values()) <= 1.0
