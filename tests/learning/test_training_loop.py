"""Where the learner's time outside of the training graph goes."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from actorlearner.config.schema import Config, EvaluateConfig, LearnConfig
from actorlearner.learning import training_loop
from actorlearner.learning.group import Group
from actorlearner.learning.learner import DataStatistics
from actorlearner.learning.outputs import Outputs
from actorlearner.learning.training_loop import TrainingLoop
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from actorlearner.records.time_shares import TimeShares
from tests.support.training import fixed_dataset, make_learner, make_parts

_STEPS = 10
_SLOW_S = 8.0


class Clock:
    """Stands in for the time: it goes on by a second in each train step, and by what is slow."""

    now = 0.0


class SlowOutputs(Outputs):
    """Publishing or saving takes long; the fractions of the records are kept."""

    def __init__(self, slow: str, clock: Clock) -> None:
        self._slow = slow
        self._clock = clock
        self.fractions: list[Mapping[str, float]] = []

    def _take_long(self, what: str) -> None:
        if what == self._slow:
            self._clock.now += _SLOW_S

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
def test_what_is_slow_takes_the_time(
    slow: str, longest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(training_loop, "TimeShares", functools.partial(TimeShares, clock=lambda: clock.now))
    learn = LearnConfig(train_steps=_STEPS, batch_size=6, publish_interval=1, checkpoint_interval=1)
    config = Config(learn=learn, evaluate=EvaluateConfig(interval=1_000))
    learner = make_learner(tmp_path, make_parts(), lambda: fixed_dataset(6, _STEPS))
    train = learner.run

    def take_a_second(iterations: int) -> Any:
        clock.now += iterations
        return train(iterations=iterations)

    monkeypatch.setattr(learner, "run", take_a_second)
    outputs = SlowOutputs(slow, clock)
    stop = Stop()
    group = Group(tf.distribute.get_strategy(), stop)
    TrainingLoop(config, group, learner, outputs, stop, StartupTimer()).run()
    fractions = dict.fromkeys(("publish_fraction", "overhead_fraction"), 0.0)
    if longest:
        fractions[longest] = _SLOW_S / (_SLOW_S + 1.0)
    assert outputs.fractions[-1] == pytest.approx(fractions)
