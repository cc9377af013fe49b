"""The learner: trains the agent on replay under a strategy and publishes its policy's variables."""

import logging
import math
import re
import threading
import time
from collections.abc import Callable

import numpy as np
import reverb
import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.config.schema import Config
from actorlearner.connection import connect
from actorlearner.devices import make_strategy, share_cpus
from actorlearner.environments.seeds import seed_for
from actorlearner.environments.specs import load_specs
from actorlearner.errors import RunError
from actorlearner.health.pulse import LONG_PATIENCE_S, beat
from actorlearner.learning.checkpoint import LearnerCheckpoint
from actorlearner.learning.first_policies import FirstPolicies
from actorlearner.learning.learner_metrics import LearnerMetrics
from actorlearner.learning.measured_learner import MeasuredLearner
from actorlearner.learning.policy_export import PolicyExport
from actorlearner.learning.publisher import Publisher
from actorlearner.process import keep_until_exit
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import ReplayLayout, make_layout
from actorlearner.replay.status import ReplayMonitor, ReplayStatus
from actorlearner.reverb_calls import UNREACHABLE, within
from actorlearner.run_directory import RunDirectory
from actorlearner.start_up import StartUp
from actorlearner.stop import Stop
from actorlearner.summaries import Summaries
from actorlearner.variables.container import VariableContainer
from actorlearner.waiting import wait_until

_log = logging.getLogger(__name__)

_STATUS_TIMEOUT_S = 5
_PUBLISH_TIMEOUT_S = 3.0
_PULL_TIMEOUT_S = 30.0
_HAND_OUT_AFTER_S = 5.0
"""How long replay is given to fill before the first policies are handed out ahead of training."""

_ROOM_INTERVAL_S = 1.0
"""Seconds between two attempts to save what came of a run on a disk that is full."""

_STARVED_AFTER_S = 3.0
"""How long a train step may wait for its batch until it is said to; after a stop it is left behind then."""


def run(config: Config, directory: RunDirectory, stop: Stop, *, replay_address: str) -> None:
    """Trains until `learn.train_steps`, or `stop`; either way a checkpoint is written at the end.

    Args:
      config: the experiment.
      directory: where checkpoints, policies, metrics and summaries are written.
      stop: ends training after the current call of the training graph.
      replay_address: HOST:PORT of the replay server.

    Raises:
      ConfigurationError: the environment, the agent or the strategy cannot be made.
      RunError: the replay server did not come in time.
    """
    start_up = StartUp()
    share_cpus(config.learn.intra_op_threads)
    strategy = make_strategy(config.learn.strategy, config.learn.batch_size)
    tf.random.set_seed(seed_for(config.seed, "learner", 0))
    specs = load_specs(config.environment)
    with strategy.scope():
        parts = make_agent(config, specs)
    checkpoint = LearnerCheckpoint(directory.learner_checkpoints, parts)
    checkpoint.restore()
    start_up.ended("environment and agent")
    layout = make_layout(config, specs)
    client = connect(replay_address, layout, directory, config, stop)
    if client is None:
        return
    start_up.ended("replay server")
    checkpoint.begin_generation(_published_generation(client))
    publisher = Publisher(client, parts, checkpoint.generation, directory.run_id)
    # Before the training graph is traced, so that actors and evaluation need not wait for that.
    publisher.publish()
    if checkpoint.generation > 0:
        publisher.take_over(checkpoint.unevaluated())
    first = FirstPolicies(publisher, PolicyExport(directory.policies, parts), int(parts.train_step.numpy()))
    summaries = Summaries(directory.summaries("learner"))
    beat("making the training graph", patience_s=LONG_PATIENCE_S)
    learner = _make_learner(config, summaries, strategy, parts, replay_address, layout)
    keep_until_exit(learner)
    checkpoint.restore_again()  # Making the learner made the target networks copies of the trained ones.
    start_up.ended("training graph")
    replay = ReplayMonitor(client, layout)
    start_up.tell("ready")
    if _wait_for_replay(config, replay, stop, first):
        beat("taking the first train steps", patience_s=LONG_PATIENCE_S)
        start_up.ended("filling replay")
        metrics = LearnerMetrics(directory, summaries)
        loop = TrainingLoop(config, metrics, learner, replay, publisher, checkpoint, first, stop, start_up)
        _train_on_a_thread(loop, learner, first, stop)
    if checkpoint.save(publisher.unevaluated()):
        _log.info("checkpoint of train step %d written", int(parts.train_step.numpy()))
    if not publisher.flush(_PUBLISH_TIMEOUT_S):
        _log.warning("the last policy was not published: the replay server does not answer")


def _published_generation(client: reverb.Client) -> int:
    """The generation of the learner that published last; -1 if none has."""
    container = VariableContainer(client)
    if not container.version(_STATUS_TIMEOUT_S):
        return -1
    newest = within(_PULL_TIMEOUT_S, container.pull)
    _log.warning("this learner takes over from one that had published train step %d", newest.train_step)
    return newest.generation


def _make_learner(
    config: Config,
    summaries: Summaries,
    strategy: tf.distribute.Strategy,
    parts: AgentParts,
    replay_address: str,
    layout: ReplayLayout,
) -> MeasuredLearner:
    batch_size = config.learn.batch_size
    per_replica = batch_size // strategy.num_replicas_in_sync
    return MeasuredLearner(
        summaries,
        parts,
        lambda: experience_dataset(replay_address, layout, batch_size, per_replica),
        layout.decode,
        summary_interval=config.learn.summary_interval,
        strategy=strategy,
    )


def _wait_for_replay(config: Config, replay: ReplayMonitor, stop: Stop, first: FirstPolicies) -> bool:
    """Waits for `replay.min_size`, however long; returns False at a stop.

    Only where replay does not fill the first policies cannot wait for it: the jobs that are to fill it may
    wait for them.
    """
    hand_out_at = time.monotonic() + _HAND_OUT_AFTER_S

    def filled() -> bool:
        try:
            if replay.status(_STATUS_TIMEOUT_S).size >= config.replay.min_size:
                return True
        except UNREACHABLE:
            return False
        if time.monotonic() >= hand_out_at:
            first.evaluate()
            first.save()
        return False

    return wait_until(f"{config.replay.min_size} transitions in replay", filled, stop, deadline_s=None)


def _train_on_a_thread(
    loop: "TrainingLoop", learner: MeasuredLearner, first: FirstPolicies, stop: Stop
) -> None:
    """Runs the loop so that this thread, which gets the signals, never blocks inside TensorFlow.

    A graph call that waits for data cannot be interrupted. When a stop comes and no data does, the
    thread is left waiting: between two train steps, where the variables are whole.
    """
    failure: list[BaseException] = []

    def body() -> None:
        try:
            loop.run()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=body, name="training", daemon=True)
    thread.start()
    starvation = _Starvation(learner)
    while thread.is_alive():
        thread.join(timeout=0.1)
        if starvation.lasts():
            if stop.requested:
                _log.info("training waits for data that does not come, and is left there")
                return
            beat("waiting for transitions to train on")
        if stop.requested and first.saving:
            _log.info("the policies are being saved for the first time, and left as they are")
            return
    if failure:
        raise failure[0]


class _Starvation:
    """Whether one train step has been waiting for its batch for longer than _STARVED_AFTER_S."""

    def __init__(self, learner: MeasuredLearner) -> None:
        self._learner = learner
        self._train_step = -1
        self._since = 0.0

    def lasts(self) -> bool:
        """Looks once more; to be called several times a second."""
        train_step = int(self._learner.train_step_numpy)
        if not self._learner.waiting_for_data or train_step != self._train_step:
            self._train_step = train_step
            self._since = time.monotonic()
        return time.monotonic() - self._since > _STARVED_AFTER_S


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
