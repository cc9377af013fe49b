"""The training loop: calls the training graph, and publishes, saves and reports at their intervals."""

import math
import re
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.config.checks import profiled_steps
from actorlearner.config.schema import Config
from actorlearner.errors import RunError
from actorlearner.learning.group import Group
from actorlearner.learning.measured_learner import MeasuredLearner
from actorlearner.learning.outputs import Outputs
from actorlearner.process.heartbeat import beat
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until
from actorlearner.records.time_shares import TimeShares

_ROOM_INTERVAL_S = 1.0
"""Seconds between two attempts to save the results of a run on a full disk."""


class TrainingLoop:
    """Calls the training graph; publishes, saves and reports between two calls."""

    def __init__(
        self,
        config: Config,
        group: Group,
        learner: MeasuredLearner,
        outputs: Outputs,
        stop: Stop,
        start_up: StartupTimer,
    ) -> None:
        """Starts at the learner's train step."""
        self._config = config
        self._group = group
        self._learner = learner
        self._outputs = outputs
        self._stop = stop
        self._start_up = start_up
        self._recorded = int(learner.train_step_numpy)
        self._time = TimeShares("graph", "publish")

    def run(self) -> None:
        """Trains until the last train step or a stop."""
        start = step = int(self._learner.train_step_numpy)
        saved = True
        while step < self._config.learn.train_steps and not self._group.stopped:
            iterations = self._iterations_until_due(step)
            self._outputs.profile(step)
            self._time.spent()
            loss = self._train(step, iterations)
            self._time.spent("graph")
            first = step == start
            step += iterations
            beat("train step", step)
            self._outputs.evaluate_first()
            self._time.spent()
            self._publish(step)
            self._time.spent("publish")
            if first:
                self._start_up.ended("first train steps")
                self._start_up.report("started")
                self._record(step, loss)
                self._outputs.count_from_here()  # Rates leave out the first call, which optimises the graph.
            elif self._outputs.record_due or step == self._config.learn.train_steps:
                self._record(step, loss)
            saved = self._save(step)
            if self._outputs.save_first():
                self._time.take()
        if step > self._recorded:  # A stop: the last record names the train step of the checkpoint.
            self._record(step, loss)
        if step == self._config.learn.train_steps:  # The results of the run must be saved.
            self._wait_for_room("the last checkpoint and policies", lambda: saved or self._save(step))
            self._wait_for_room("the last metrics", self._outputs.flush)

    def _wait_for_room(self, what: str, written: Callable[[], bool]) -> None:
        wait_until(
            f"room on the disk for {what}", written, self._stop, deadline_s=None, interval_s=_ROOM_INTERVAL_S
        )

    def _iterations_until_due(self, step: int) -> int:
        """Returns the train steps of the next call, which must not run past the next interval's end."""
        learn = self._config.learn
        intervals = (learn.publish_interval, learn.checkpoint_interval, self._config.evaluate.interval)
        ends = (learn.train_steps, *(profiled_steps(learn.profile) or ()))
        return min(
            learn.train_steps_per_call,
            *(end - step for end in ends if end > step),
            *(interval - step % interval for interval in intervals),
        )

    def _train(self, step: int, iterations: int) -> LossInfo:
        """Takes train steps; ends training before variables spoilt by a NaN are published or saved."""
        self._group.begin_call()
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
            f"training has diverged: after train step {step} the loss was {value}; {self._outputs.remains()}"
        )

    def _due(self, interval: int, step: int) -> bool:
        return step == self._config.learn.train_steps or step % interval == 0

    def _publish(self, step: int) -> None:
        if self._due(self._config.evaluate.interval, step):
            self._outputs.publish_for_evaluation()
        if self._due(self._config.learn.publish_interval, step):
            self._outputs.publish()

    def _save(self, step: int) -> bool:
        """Saves at the interval; returns False if the disk has no room."""
        return not self._due(self._config.learn.checkpoint_interval, step) or self._outputs.save()

    def _record(self, step: int, loss: LossInfo) -> None:
        self._outputs.record(loss, self._learner.take_statistics(), self._fractions())
        self._recorded = step

    def _fractions(self) -> dict[str, float]:
        """Returns the shares of time, since the last record, spent outside of the training graph."""
        spent = self._time.take()
        overhead = max(0.0, 1.0 - spent["graph"] - spent["publish"])
        return {"publish_fraction": spent["publish"], "overhead_fraction": overhead}
