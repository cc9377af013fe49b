"""The outputs of the chief learner: published policies, checkpoints, SavedModels, metrics and curves."""

import functools
import logging
import time

import reverb
import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.agents.make import AgentParts
from actorlearner.callbacks.callback import Checkpoint, Publication
from actorlearner.callbacks.caller import Callbacks
from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.learning.checkpoint import LearnerCheckpoint
from actorlearner.learning.learner_metrics import LearnerMetrics
from actorlearner.learning.outputs import Outputs
from actorlearner.learning.policy_export import PolicyExport
from actorlearner.learning.profiler import Profiler
from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.learning.warm_start import warm_start
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.process.role_names import LEARNER
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_for_room, wait_until
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.replay.connection import CONNECT_DEADLINE_S
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import ReplayStatus, ReplayStatusSource
from actorlearner.variables.container import EvaluationRequest, VariableContainer
from actorlearner.variables.publisher import Publisher

_log = logging.getLogger(__name__)

_STATUS_TIMEOUT_S = 5
_PUBLISH_TIMEOUT_S = 3.0
_SAVE_AFTER_S = 600.0
"""Seconds after which a checkpoint is due, however few train steps were taken since the last one. With a slow
simulator, 10,000 train steps may take an hour."""


class ChiefOutputs(Outputs):
    """The outputs of a learner that trains by itself, or of a group's chief.

    `take_over` makes the publisher, and `begin_training` the metrics; later methods use them.
    """

    def __init__(self, directory: RunDirectory, parts: AgentParts, config: Config, stop: Stop) -> None:
        """Does not restore, publish or write yet: a refused run leaves nothing behind."""
        self._directory = directory
        self._parts = parts
        self._config = config
        self._stop = stop
        self._callbacks = Callbacks(config, LEARNER)
        self._checkpoint = LearnerCheckpoint(
            directory.learner_checkpoints,
            parts,
            lambda train_step, path: self._callbacks.notify(Checkpoint(train_step, path)),
        )
        self._profiler = Profiler(config.learn.profile, directory.summaries("learner"))
        self._export = PolicyExport(directory.policies, parts, config)
        self._held_back: list[EvaluationRequest] = []
        self._graph: TrainingGraph | None = None
        self._last_status = ReplayStatus(0, 0, 0)

    @functools.cached_property
    def _summaries(self) -> Summaries:
        return Summaries(self._directory.summaries("learner"))

    @property
    def writer(self) -> tf.summary.SummaryWriter:
        """TensorFlow's writer of the curves; the first read creates their file."""
        return self._summaries.writer

    def restore(self, specs: EnvironmentSpecs, strategy: tf.distribute.Strategy) -> None:
        """Restores the newest complete checkpoint, or copies the weights of `agent.start_from`.

        Raises:
          ConfigurationError: `agent.start_from` names no weights that fit the agent.
          RunError: the newest checkpoint belongs to another agent.
        """
        beat("restoring the newest checkpoint", patience_s=LONG_PATIENCE_S)
        path = self._config.agent.start_from
        if not self._checkpoint.restore() and path is not None:
            warm_start(path, self._parts, specs, strategy)

    def check_restored(self) -> None:
        """Raises a RunError unless the restored checkpoint had exactly the agent's variables."""
        self._checkpoint.check_restored()

    def take_over(self, client: reverb.Client, replay: ReplayStatusSource) -> None:
        """Takes over the run as a new generation, and publishes the policy.

        Blocks until the replay server reports the last generation, up to CONNECT_DEADLINE_S, and in a resumed
        run until it has dropped the evaluations queued by the last learner.

        Args:
          client: a client of the replay server.
          replay: reports the status of replay.

        Raises:
          RunError: the replay server does not answer in time, or the policy is not finite.
        """
        self._replay = replay
        self._callbacks.begin(self._directory)
        self._checkpoint.begin_generation(published_generation(client, self._stop))
        self._publisher = Publisher(
            client,
            self._parts,
            self._checkpoint.generation,
            self._directory.run_id,
            lambda version: self._callbacks.notify(Publication(version.train_step, version.generation)),
        )
        self._publisher.publish()
        pending = self._checkpoint.pending_evaluations()
        if self._checkpoint.generation > 0:
            self._publisher.replace_queue(pending, self._stop)
        if self._train_step == 0 and self._config.evaluate.interval is not None and not pending:
            self._held_back = [self._publisher.make_request(env_steps=0)]

    def check(self) -> None:
        """Raises the publisher's error, if any; training that waits for data would not notice it."""
        self._publisher.check()

    def output_initial_policies(self) -> None:
        """Queues the initial policy's evaluation and saves the policies, unless this is done already."""
        self._queue_held_back()
        self._save_initial_policies()

    def begin_training(self, graph: TrainingGraph) -> None:
        """Starts the measurements."""
        self._graph = graph
        self._steps_per_call = graph.train_steps_per_call
        graph.begin(self._checkpoint.generation)
        self._metrics = LearnerMetrics(self._directory, self._summaries, graph, self._replay_status)
        self._last_call = self._train_step
        self._save_due_at = time.monotonic() + _SAVE_AFTER_S
        self._profiler.update(self._train_step, self._steps_per_call or 1)

    def after_call(self, train_step: int, loss: LossInfo) -> None:
        """Publishes, saves and records what is due after a call of the training graph.

        `after_training` publishes the last policy, and queues its evaluation.
        """
        learn = self._config.learn
        self._metrics.spent("graph")
        self._queue_held_back()
        last = self._last(train_step)
        if self._due(self._config.evaluate.interval, train_step):
            self._held_back = [self._publisher.make_request(self._replay_status().inserts)]
            if not last:
                self._queue_held_back()
        on_policy = self._steps_per_call is not None  # Then the actors need the policy of each call.
        if not last and (on_policy or self._due(learn.publish_interval, train_step)):
            self._publisher.publish()
        self._metrics.spent("publish")
        self._metrics.add(train_step, loss, last=last)
        if self._due(learn.checkpoint_interval, train_step) or time.monotonic() >= self._save_due_at:
            self._save()
            self._save_due_at = time.monotonic() + _SAVE_AFTER_S
        if self._save_initial_policies():
            self._metrics.restart_rates()
        self._profiler.update(train_step, self._steps_per_call or 1)
        self._last_call = train_step
        self._metrics.spent()

    def after_training(self) -> None:
        """Writes the last record; after the run's last train step, also saves the results of the run.

        Blocks while the disk has no room for them, until a stop. The last policy is published and evaluated
        after it is saved, because this ends the actors and the eval actor: a learner that died before would
        need them again.
        """
        self._metrics.write(self._train_step)
        if self._last(self._train_step):
            saved = wait_for_room("the last checkpoint and policies", self._save, self._stop)
            wait_for_room("the last metrics", self._metrics.flush, self._stop)
            if saved:
                self._queue_held_back()
                self._publisher.publish()

    def end(self, *, stopped: bool) -> None:
        """Writes the last checkpoint, policies and record, unless they are written; delivers the last policy.

        After the last train step, blocks until the replay server has saved the policy variables, or until a
        stop: no later learner would publish them again. After a stop, waits up to _PUBLISH_TIMEOUT_S for the
        server to store them.

        Args:
          stopped: whether a signal ends the learner, instead of its last train step.

        Raises:
          RunError: a train step has failed, or is in progress and does not end; or publishing has failed.
        """
        beat("writing the last checkpoint", patience_s=LONG_PATIENCE_S)
        self._profiler.end()
        if self._checkpoint.save(self._pending_evaluations(), self._graph):
            _log.info("checkpoint of train step %d written", self._train_step)
        if self._export.begun:  # Otherwise a stop would wait until the policies are traced.
            self._export.save(self._graph)
        if self._graph is not None:  # Written already, unless a call of the graph still waits for data.
            self._metrics.spent("graph")
            self._metrics.write(self._train_step)
        delivered = not stopped and self._deliver()
        if not delivered and not self._publisher.flush(_PUBLISH_TIMEOUT_S):
            _log.warning("the last policy was not published: the replay server does not answer")
        self._callbacks.close(stopped=stopped)

    def _queue_held_back(self) -> None:
        """Queues the held-back evaluation, if any.

        The initial policy's is held back until the first call of the training graph, because it takes a core
        for seconds, and the last policy's until this policy is saved, see `after_training`.
        """
        self._publisher.queue(self._held_back)
        self._held_back = []

    def _save_initial_policies(self) -> bool:
        """Saves the policies, unless this learner has saved some before; returns False then."""
        if self._export.begun:
            return False
        beat("saving the policies", patience_s=LONG_PATIENCE_S)
        self._export.save()
        return True

    def _save(self) -> bool:
        """Writes a checkpoint and the policies; returns False if the disk has no room."""
        beat("writing a checkpoint", patience_s=LONG_PATIENCE_S)
        saved = [self._checkpoint.save(self._pending_evaluations()), self._export.save()]
        return all(saved)

    def _pending_evaluations(self) -> list[EvaluationRequest]:
        return [*self._publisher.pending_evaluations(), *self._held_back]

    def _deliver(self) -> bool:
        """Waits until the replay server has saved the last policies; returns False at a stop."""
        self._publisher.finish()
        what = "the replay server to save the last policies"
        return wait_until(what, self._publisher.delivered, self._stop, deadline_s=None)

    def _due(self, interval: int | None, train_step: int) -> bool:
        """Returns whether the last call ended an interval, or the run; False if `interval` is None."""
        if interval is None:
            return False
        return train_step // interval > self._last_call // interval or self._last(train_step)

    def _last(self, train_step: int) -> bool:
        return train_step == self._config.learn.train_steps

    @property
    def _train_step(self) -> int:
        return int(self._parts.train_step.numpy())

    def _replay_status(self) -> ReplayStatus:
        """Returns the status of replay, or the last known one if the server does not answer."""
        try:
            self._last_status = self._replay.status(_STATUS_TIMEOUT_S)
        except UNREACHABLE:
            _log.warning("the replay server does not answer; its last known figures are used")
        return self._last_status


def published_generation(client: reverb.Client, stop: Stop) -> int:
    """Returns the generation of the learner that published last; -1 if none has, or at a stop.

    Blocks until the replay server answers, up to CONNECT_DEADLINE_S: it may be saving or restarting.

    Args:
      client: a client of the replay server.
      stop: ends the wait.

    Raises:
      RunError: the server does not answer in time.
    """
    generations = [-1]

    def answered() -> bool:
        container = VariableContainer(client)
        try:
            if newest := container.newest(_STATUS_TIMEOUT_S):
                _log.warning(
                    "this learner takes over from one that had published train step %d", newest.train_step
                )
                generations.append(newest.generation)
        except UNREACHABLE:
            return False
        return True

    what = "the replay server to report which learner published last"
    wait_until(what, answered, stop, deadline_s=CONNECT_DEADLINE_S)
    return generations[-1]
