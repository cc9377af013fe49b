"""The training loop: calls the training graph, and publishes, saves and reports what is due."""

import logging
import math
import re
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.config.schema import Config
from actorlearner.errors import RunError
from actorlearner.health.pulse import LONG_PATIENCE_S, beat
from actorlearner.learning.checkpoint import LearnerCheckpoint
from actorlearner.learning.first_policies import FirstPolicies
from actorlearner.learning.learner_metrics import LearnerMetrics
from actorlearner.learning.measured_learner import MeasuredLearner
from actorlearner.learning.publisher import Publisher
from actorlearner.replay.status import ReplayMonitor, ReplayStatus
from actorlearner.reverb_calls import UNREACHABLE
from actorlearner.start_up import StartUp
from actorlearner.stop import Stop
from actorlearner.waiting import wait_until

_log = logging.getLogger(__name__)

_STATUS_TIMEOUT_S = 5

_ROOM_INTERVAL_S = 1.0
"""Seconds between two attempts to save what came of a run on a disk that is full."""


class TrainingLoop:
    """Calls the training graph and does what is due between two calls."""

    def __init__(
        self,
        config: Config,
        metrics: LearnerMetrics,
        learner: MeasuredLearner,
        replay: ReplayMonitor,
        publisher: Publisher,
        checkpoint: LearnerCheckpoint,
        first: FirstPolicies,
        stop: Stop,
        start_up: StartUp,
    ) -> None:
        """Begins at the learner's train step."""
        self._config = config
        self._learner = learner
        self._monitor = replay
        self._publisher = publisher
        self._checkpoint = checkpoint
        self._first = first
        self._stop = stop
        self._start_up = start_up
        self._metrics = metrics
        self._replay = ReplayStatus(0, 0, 0)
        self._reported = int(learner.train_step_numpy)

    def run(self) -> None:
        """Trains until the last train step or a stop."""
        start = step = int(self._learner.train_step_numpy)
        saved = True
        while step < self._config.learn.train_steps and not self._stop.requested:
            iterations = self._iterations_until_due(step)
            loss = self._train(step, iterations)
            first = step == start
            step += iterations
            beat("train step", step)
            self._first.evaluate()
            self._publish(step)
            if first:
                self._start_up.ended("first train steps")
                self._start_up.tell("started")
                self._report(step, loss)
                self._metrics.begin(step)  # The first call optimises the graph; no later rate has that.
            elif self._metrics.due or step == self._config.learn.train_steps:
                self._report(step, loss)
            saved = self._save(step)
            if self._first.save():
                self._metrics.begin(step)  # No rate should contain those seconds.
        if step > self._reported:  # A stop: the last record names the train step of the checkpoint.
            self._report(step, loss)
        if step == self._config.learn.train_steps:  # What came of the run is not given up.
            self._wait_for_room("the last checkpoint and policies", lambda: saved or self._save(step))
            self._wait_for_room("the last metrics", self._metrics.flush)

    def _wait_for_room(self, what: str, written: Callable[[], bool]) -> None:
        wait_until(
            f"room on the disk for {what}", written, self._stop, deadline_s=None, interval_s=_ROOM_INTERVAL_S
        )

    def _iterations_until_due(self, step: int) -> int:
        """Train steps of the next call: none may run past a train step at which something is due."""
        learn = self._config.learn
        intervals = (learn.publish_interval, learn.checkpoint_interval, self._config.evaluate.interval)
        return min(
            learn.train_steps_per_call,
            learn.train_steps - step,
            *(interval - step % interval for interval in intervals),
        )

    def _train(self, step: int, iterations: int) -> LossInfo:
        """Takes train steps; ends training before what a NaN has spoilt is published or saved."""
        try:
            loss = self._learner.run(iterations=iterations)
        except tf.errors.InvalidArgumentError as error:
            if not re.search(
                "Tensor had (NaN|Inf|-Inf)", str(error)
            ):  # An agent's own tf.debugging.check_numerics.
                raise
            value = "not finite"
        else:
            mean = float(np.mean(loss.loss))
            if math.isfinite(mean):
                return loss
            value = str(mean)
        raise RunError(
            f"training has diverged: after train step {step} the loss was {value}; nothing was saved since "
            f"{self._checkpoint.describe()}, and no policy of it was published"
        )

    def _due(self, interval: int, step: int) -> bool:
        return step == self._config.learn.train_steps or step % interval == 0

    def _publish(self, step: int) -> None:
        if self._due(self._config.evaluate.interval, step):
            self._look_at_replay()
            self._publisher.publish_for_evaluation(self._replay.inserts)
        if self._due(self._config.learn.publish_interval, step):
            self._publisher.publish()

    def _save(self, step: int) -> bool:
        """Saves what is due; returns False if the disk has no room for it."""
        if not self._due(self._config.learn.checkpoint_interval, step):
            return True
        beat("writing a checkpoint", patience_s=LONG_PATIENCE_S)
        saved = [self._checkpoint.save(self._publisher.unevaluated()), self._first.export.save()]
        return all(saved)

    def _report(self, step: int, loss: LossInfo) -> None:
        self._look_at_replay()
        self._metrics.write(step, loss, self._replay, self._learner.take_statistics())
        self._reported = step

    def _look_at_replay(self) -> None:
        try:
            self._replay = self._monitor.status(_STATUS_TIMEOUT_S)
        except UNREACHABLE:
            _log.warning("the replay server does not answer; its figures are those of the last look")
