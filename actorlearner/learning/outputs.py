"""The outputs of a learner: published policies, checkpoints, SavedModels, metrics and curves."""

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

import reverb
import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.callbacks.callback import Checkpoint, Publication
from actorlearner.callbacks.caller import Callbacks
from actorlearner.config.schema import Config
from actorlearner.learning.checkpoint import LearnerCheckpoint
from actorlearner.learning.initial_policies import InitialPolicies
from actorlearner.learning.learner_metrics import LearnerMetrics
from actorlearner.learning.measured_learner import DataStatistics
from actorlearner.learning.policy_export import PolicyExport
from actorlearner.learning.previous_learner import published_generation
from actorlearner.learning.profiler import Profiler
from actorlearner.process.health import LEARNER
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import ReplayMonitor, ReplayStatus
from actorlearner.variables.publisher import Publisher

_log = logging.getLogger(__name__)

_STATUS_TIMEOUT_S = 5
_PUBLISH_TIMEOUT_S = 3.0


class Outputs:
    """No-op implementation for the learners of a group that are not the chief."""

    @functools.cached_property
    def writer(self) -> tf.summary.SummaryWriter:
        """TensorFlow's writer of the curves; reading it creates their file."""
        return tf.summary.create_noop_writer()

    def restore(self) -> None:
        """Restores the newest complete checkpoint, if any.

        Raises:
          RunError: it belongs to another agent.
        """

    def restore_again(self) -> None:
        """Restores the same checkpoint again once all variables exist; some may have changed meanwhile.

        Raises:
          RunError: the checkpoint and the agent differ in a variable.
        """

    def begin(self, client: reverb.Client, replay: ReplayMonitor, stop: Stop) -> None:
        """Takes over the run as a new generation, and publishes the policy.

        Blocks until the replay server reports the last generation, up to CONNECT_DEADLINE_S.

        Args:
          client: a client of the replay server.
          replay: reports the status of replay.
          stop: ends the wait.

        Raises:
          RunError: the replay server does not answer in time.
        """

    def begin_training(self) -> None:
        """Starts the metrics and their first rate."""

    def hand_out(self) -> None:
        """Evaluates and saves the initial policies, although training has not begun."""

    def evaluate_first(self) -> None:
        """Queues the evaluation of the initial policy, see InitialPolicies."""

    def save_first(self) -> bool:
        """Saves the policies unless they are saved, see InitialPolicies; rates leave these seconds out.

        Returns:
          Whether it saved them.
        """
        return False

    @property
    def saving_first(self) -> bool:
        """Whether the policies are being saved for the first time; safe to read from another thread."""
        return False

    def profile(self, train_step: int) -> None:
        """Starts or ends the profile at its train steps, see Profiler."""

    def publish(self) -> None:
        """Publishes the policy for acting, see Publisher."""

    def publish_for_evaluation(self) -> None:
        """Publishes the policy for its evaluation, see Publisher."""

    @property
    def record_due(self) -> bool:
        """Whether the next record of metrics is due."""
        return False

    def record(self, loss: Any, data: DataStatistics, fractions: Mapping[str, float]) -> None:
        """Writes a record of metrics, see LearnerMetrics."""

    def count_from_here(self) -> None:
        """Restarts the measurement of rates."""

    def flush(self) -> bool:
        """Writes the metrics that a full disk has delayed; returns whether everything is written."""
        return True

    def save(self) -> bool:
        """Writes a checkpoint and the policies; returns False if the disk has no room."""
        return True

    def end(self, *, stopped: bool, settled: Callable[[], bool] = lambda: True) -> None:
        """Writes the last checkpoint, unless it is written, and delivers the last policies.

        After the last train step it blocks until the replay server has saved them, or until a stop: no later
        learner would publish them. After a stop it waits up to _PUBLISH_TIMEOUT_S for the server to store
        them.

        Args:
          stopped: whether a signal ends the learner, instead of its last train step.
          settled: returns whether no train step is in progress, see `train_on_a_thread`.

        Raises:
          RunError: a train step is in progress and does not end.
        """

    def remains(self) -> str:
        """Describes what remains of a failed training, for messages."""
        return "the chief says what was saved before"


class ChiefOutputs(Outputs):
    """The outputs of a chief, or of a learner that trains by itself."""

    def __init__(self, directory: RunDirectory, parts: AgentParts, config: Config) -> None:
        """Does not restore, publish or write yet: a refused run leaves nothing behind."""
        self._directory = directory
        self._parts = parts
        self._config = config
        self._callbacks = Callbacks(config, LEARNER)
        self._checkpoint = LearnerCheckpoint(
            directory.learner_checkpoints,
            parts,
            lambda train_step, path: self._callbacks.notify(Checkpoint(train_step, path)),
        )
        self._profiler = Profiler(config.learn.profile, directory.summaries("learner"))
        self._replay = ReplayStatus(0, 0, 0)

    @functools.cached_property
    def _summaries(self) -> Summaries:
        return Summaries(self._directory.summaries("learner"))

    @functools.cached_property
    def writer(self) -> tf.summary.SummaryWriter:
        """TensorFlow's writer of the curves."""
        return self._summaries.writer

    def restore(self) -> None:
        """Restores the newest complete checkpoint, if any."""
        self._checkpoint.restore()

    def restore_again(self) -> None:
        """Restores it again once all variables exist."""
        self._checkpoint.restore_again()

    def begin(self, client: reverb.Client, replay: ReplayMonitor, stop: Stop) -> None:
        """Takes over the run as a new generation, and publishes the policy."""
        self._monitor = replay
        self._stop = stop
        self._callbacks.begin(self._directory)
        self._checkpoint.begin_generation(published_generation(client, stop))
        self._publisher = Publisher(
            client,
            self._parts,
            self._checkpoint.generation,
            self._directory.run_id,
            lambda version: self._callbacks.notify(Publication(version.train_step, version.generation)),
        )
        self._publisher.publish()
        if self._checkpoint.generation > 0:
            self._publisher.take_over(self._checkpoint.pending_evaluations(), stop)
        export = PolicyExport(self._directory.policies, self._parts, self._config)
        self._first = InitialPolicies(self._publisher, export, self._train_step)

    def begin_training(self) -> None:
        """Starts the metrics."""
        self._metrics = LearnerMetrics(self._directory, self._summaries, self._train_step)

    def hand_out(self) -> None:
        """Evaluates and saves the initial policies."""
        self._first.evaluate()
        self._first.save()

    def evaluate_first(self) -> None:
        """Queues the evaluation of the initial policy."""
        self._first.evaluate()

    def save_first(self) -> bool:
        """Saves the policies unless they are saved; returns whether it did."""
        saved = self._first.save()
        if saved:
            self.count_from_here()
        return saved

    @property
    def saving_first(self) -> bool:
        """Whether the policies are being saved for the first time."""
        return self._first.saving

    def profile(self, train_step: int) -> None:
        """Starts or ends the profile at its train steps."""
        self._profiler.at(train_step)

    def publish(self) -> None:
        """Publishes the policy for acting."""
        self._publisher.publish()

    def publish_for_evaluation(self) -> None:
        """Queues the policy for evaluation."""
        self._look_at_replay()
        self._publisher.publish_for_evaluation(self._replay.inserts)

    @property
    def record_due(self) -> bool:
        """Whether the next record of metrics is due."""
        return self._metrics.due

    def record(self, loss: Any, data: DataStatistics, fractions: Mapping[str, float]) -> None:
        """Writes a record of metrics."""
        self._look_at_replay()
        self._metrics.write(self._train_step, loss, self._replay, data, fractions)

    def count_from_here(self) -> None:
        """Restarts the measurement of rates."""
        self._look_at_replay()
        self._metrics.begin(self._train_step, self._replay)

    def flush(self) -> bool:
        """Writes delayed metrics; returns whether everything is written."""
        return self._metrics.flush()

    def save(self) -> bool:
        """Writes a checkpoint and the policies; returns False if the disk has no room."""
        beat("writing a checkpoint", patience_s=LONG_PATIENCE_S)
        saved = [self._checkpoint.save(self._publisher.pending_evaluations()), self._first.export.save()]
        return all(saved)

    def end(self, *, stopped: bool, settled: Callable[[], bool] = lambda: True) -> None:
        """Writes the last checkpoint and delivers the last policies."""
        self._profiler.end()
        if self._checkpoint.save(self._publisher.pending_evaluations(), settled):
            _log.info("checkpoint of train step %d written", self._train_step)
        delivered = not stopped and self._deliver()
        if not delivered and not self._publisher.flush(_PUBLISH_TIMEOUT_S):
            _log.warning("the last policy was not published: the replay server does not answer")
        self._callbacks.close(stopped=stopped)

    def _deliver(self) -> bool:
        """Waits until the replay server has saved the last policies; returns False at a stop."""
        self._publisher.finish()
        what = "the replay server to save the last policies"
        return wait_until(what, self._publisher.delivered, self._stop, deadline_s=None)

    def remains(self) -> str:
        """Describes the last checkpoint."""
        saved = f"nothing was saved since {self._checkpoint.describe()}"
        return f"{saved}, and no policy of it was published"

    @property
    def _train_step(self) -> int:
        return int(self._parts.train_step.numpy())

    def _look_at_replay(self) -> None:
        try:
            self._replay = self._monitor.status(_STATUS_TIMEOUT_S)
        except UNREACHABLE:
            _log.warning("the replay server does not answer; its figures are those of the last look")
