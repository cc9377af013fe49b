"""What a learner leaves: published policies, checkpoints, SavedModels, metrics and curves."""

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
    """Those of a learner that is not its group's chief: none. Whatever it is told to do is done already."""

    @functools.cached_property
    def writer(self) -> tf.summary.SummaryWriter:
        """TensorFlow's, of the curves; the first look begins their file."""
        return tf.summary.create_noop_writer()

    def restore(self) -> None:
        """Restores the newest complete checkpoint, if any.

        Raises:
          RunError: it is not of this agent.
        """

    def restore_again(self) -> None:
        """Restores the same again, once all variables are made; something else may have changed them.

        Raises:
          RunError: the checkpoint and the agent differ in a variable.
        """

    def begin(self, client: reverb.Client, replay: ReplayMonitor, stop: Stop) -> None:
        """Takes over the run as a new generation, and publishes the policy.

        Blocks until the replay server tells which generation was the last, up to CONNECT_DEADLINE_S.

        Args:
          client: of the replay server.
          replay: asks it for its status.
          stop: ends the wait.

        Raises:
          RunError: the replay server does not tell in time.
        """

    def begin_training(self) -> None:
        """Begins the metrics, whose first rate counts from now on."""

    def hand_out(self) -> None:
        """Lets the policies of before training be evaluated and saved, though training has not begun."""

    def evaluate_first(self) -> None:
        """Lets the policy of before training be evaluated, see FirstPolicies."""

    def save_first(self) -> bool:
        """Saves the policies unless they are, see FirstPolicies; no rate has the seconds that it takes.

        Returns:
          Whether it took them.
        """
        return False

    @property
    def saving_first(self) -> bool:
        """Whether the policies are being saved for the first time; may be asked from another thread."""
        return False

    def profile(self, train_step: int) -> None:
        """Begins or ends the profile if that is due at this train step, see Profiler."""

    def publish(self) -> None:
        """Publishes the policy for acting, see Publisher."""

    def publish_for_evaluation(self) -> None:
        """Publishes the policy for its evaluation, see Publisher."""

    @property
    def record_due(self) -> bool:
        """Whether the next record of metrics is."""
        return False

    def record(self, loss: Any, data: DataStatistics, fractions: Mapping[str, float]) -> None:
        """Writes a record of metrics, see LearnerMetrics."""

    def count_from_here(self) -> None:
        """Lets rates count from now on."""

    def flush(self) -> bool:
        """Writes what a full disk has kept out of the metrics; returns whether everything is written."""
        return True

    def save(self) -> bool:
        """Writes a checkpoint and the policies; returns False if the disk has no room for them."""
        return True

    def end(self, *, stopped: bool, settled: Callable[[], bool] = lambda: True) -> None:
        """Writes the last checkpoint, unless it is written, and delivers the last policies.

        After the last train step it blocks until the replay server has saved them, or until a stop: no other
        learner publishes them. After a stop it waits up to _PUBLISH_TIMEOUT_S for the server to take them.

        Args:
          stopped: whether a signal ends the learner, and not its last train step.
          settled: returns whether no train step is in progress, see `train_on_a_thread`.

        Raises:
          RunError: a train step is in progress and does not end.
        """

    def remains(self) -> str:
        """What there is of a training that has failed, in words."""
        return "the chief says what was saved before"


class ChiefOutputs(Outputs):
    """See Outputs: those of a chief, or of a learner that trains by itself."""

    def __init__(self, directory: RunDirectory, parts: AgentParts, config: Config) -> None:
        """Neither restores nor publishes nor writes anything yet: a run that is refused leaves nothing."""
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
        """See Outputs."""
        return self._summaries.writer

    def restore(self) -> None:
        """See Outputs."""
        self._checkpoint.restore()

    def restore_again(self) -> None:
        """See Outputs."""
        self._checkpoint.restore_again()

    def begin(self, client: reverb.Client, replay: ReplayMonitor, stop: Stop) -> None:
        """See Outputs."""
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
        """See Outputs."""
        self._metrics = LearnerMetrics(self._directory, self._summaries, self._train_step)

    def hand_out(self) -> None:
        """See Outputs."""
        self._first.evaluate()
        self._first.save()

    def evaluate_first(self) -> None:
        """See Outputs."""
        self._first.evaluate()

    def save_first(self) -> bool:
        """See Outputs."""
        saved = self._first.save()
        if saved:
            self.count_from_here()
        return saved

    @property
    def saving_first(self) -> bool:
        """See Outputs."""
        return self._first.saving

    def profile(self, train_step: int) -> None:
        """See Outputs."""
        self._profiler.at(train_step)

    def publish(self) -> None:
        """See Outputs."""
        self._publisher.publish()

    def publish_for_evaluation(self) -> None:
        """See Outputs."""
        self._look_at_replay()
        self._publisher.publish_for_evaluation(self._replay.inserts)

    @property
    def record_due(self) -> bool:
        """See Outputs."""
        return self._metrics.due

    def record(self, loss: Any, data: DataStatistics, fractions: Mapping[str, float]) -> None:
        """See Outputs."""
        self._look_at_replay()
        self._metrics.write(self._train_step, loss, self._replay, data, fractions)

    def count_from_here(self) -> None:
        """See Outputs."""
        self._look_at_replay()
        self._metrics.begin(self._train_step, self._replay)

    def flush(self) -> bool:
        """See Outputs."""
        return self._metrics.flush()

    def save(self) -> bool:
        """See Outputs."""
        beat("writing a checkpoint", patience_s=LONG_PATIENCE_S)
        saved = [self._checkpoint.save(self._publisher.pending_evaluations()), self._first.export.save()]
        return all(saved)

    def end(self, *, stopped: bool, settled: Callable[[], bool] = lambda: True) -> None:
        """See Outputs."""
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
        """See Outputs."""
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
