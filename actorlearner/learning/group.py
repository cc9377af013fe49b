"""A learner's strategy, and the steps that the learners of a group take together."""

import logging
import signal
from types import TracebackType
from typing import Any, Self

import tensorflow as tf

from actorlearner.config.resolved import fingerprint
from actorlearner.config.schema import Config
from actorlearner.errors import RunError, one_line
from actorlearner.learning.cluster import Cluster, learner_cluster
from actorlearner.learning.group_link import SILENCE_S, GroupLink
from actorlearner.learning.strategy import check_group_batch, make_group_strategy, make_strategy
from actorlearner.process.role_process import end_failed
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until

_log = logging.getLogger(__name__)

_REPORT_S = 5.0
"""Seconds to wait for the report of a stopped learner; each learner polls its stop several times a second."""

_PEER_ERRORS = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,
    tf.errors.UnavailableError,
)
"""The errors of a collective that another learner may have caused."""


class LearnerGroup:
    """One learner's view of its group. This base class is a group of one, without collectives.

    A context manager; enter it before using the strategy.

    Attributes:
      strategy: the strategy under which the agent is made and trained.
      index: the index of this learner; 0 is the chief, which alone publishes and saves.
      size: the number of learners.
      data: what a train step waits for, for messages.
    """

    data = "transitions to train on"

    def __init__(self, strategy: tf.distribute.Strategy, stop: Stop, index: int = 0, size: int = 1) -> None:
        """Wraps a strategy; `stop` is this learner's."""
        self.strategy = strategy
        self.index = index
        self.size = size
        self._stop = stop

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """No-op: there is no other learner."""

    def begin_call(self) -> None:
        """Fixes this learner's vote on stopping; call it before each call of the training graph.

        No-op in a group of one.
        """

    @property
    def stopped(self) -> bool:
        """Whether training ends now; equal for all learners after the same call of the training graph."""
        return self._stop.requested

    @property
    def may_abandon_training(self) -> bool:
        """True if a stopped learner may end although a train step still waits for data."""
        return True

    def all_have_data(self) -> list[tf.Operation]:
        """Returns operations of the graph that block until every learner has its next batch."""
        return []

    def sum(self, value: tf.Tensor) -> tf.Tensor:
        """Returns the sum of a float32 tensor over all learners, in the graph."""
        return value

    def broadcast(self, root: tf.Module, *others: tf.Variable) -> None:
        """Copies the chief's values of all variables of `root`, of its optimisers and of `others`.

        All learners have to call this, once the optimisers have their slots.
        """


class MultiWorkerGroup(LearnerGroup):
    """A learner that trains together with others: tf.distribute.MultiWorkerMirroredStrategy."""

    data = "transitions to train on, here or at another learner"

    def __init__(
        self, strategy: tf.distribute.Strategy, stop: Stop, cluster: Cluster, link: GroupLink
    ) -> None:
        """Takes the group's strategy and its connected link, as `join_group` makes them."""
        super().__init__(strategy, stop, cluster.index, len(cluster.addresses))
        self._link = link
        self._cluster = cluster
        # The vote to stop, 1 or 0, and the sum of all learners' votes. They are made outside of the
        # strategy's scope, so that they are local to this learner.
        self._own_vote = tf.Variable(0.0, trainable=False)
        self._all_votes = tf.Variable(0.0, trainable=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Reports to the peers how this learner ended.

        Raises:
          RunError: another learner was lost, during a collective or before the chief saved the results.
        """
        if isinstance(error, _PEER_ERRORS) and (lost := self._link.wait_for_loss(SILENCE_S)):
            self._link.close()
            raise RunError(lost) from error
        if error is None and not self._stop.requested:
            self._wait_for_the_chief()
        self._link.close(None if error is None else _reason(error))

    def _wait_for_the_chief(self) -> None:
        """Waits until the chief has saved the results; raises a RunError if the chief is lost before."""
        if self._cluster.is_chief:
            return
        self._link.leave()
        what = f"the chief, {self._cluster.describe(0)}, to save the results of the run"

        def saved() -> bool:
            if self._link.lost is not None:
                raise RunError(self._link.lost)
            return self._link.others_have_left

        wait_until(what, saved, self._stop, deadline_s=None)

    def begin_call(self) -> None:
        """Fixes this learner's vote on stopping for the whole call."""
        self._own_vote.assign(float(self._stop.requested))

    @property
    def stopped(self) -> bool:
        """True if any learner voted to stop in the last call of the training graph.

        If so, blocks up to _REPORT_S until the stopped learner's report sets this learner's exit code.
        """
        if not self._all_votes.numpy():
            return False
        if not self._stop.wait(_REPORT_S):
            _log.info("stopping, because another learner was stopped")
            self._stop.request(signal.SIGTERM)
        return True

    @property
    def may_abandon_training(self) -> bool:
        """True for the chief, and for the others once the chief has ended.

        The chief may be between two calls of the training graph, for example writing a checkpoint, while the
        others wait for it. Its next call needs them: in that call all learners agree on stopping.
        """
        return self._cluster.is_chief or self._link.others_have_left

    def all_have_data(self) -> list[tf.Operation]:
        """Returns a collective that blocks until every learner has its batch; it also sums the votes to stop.

        No learner changes a variable before every learner has its batch. So all learners are at the same
        train step while one waits for data, and the chief can write a checkpoint.
        """
        return [self._all_votes.assign(self.sum(tf.identity(self._own_vote)))]

    def sum(self, value: tf.Tensor) -> tf.Tensor:
        """Sums a float32 tensor over all learners."""
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)

    def broadcast(self, root: tf.Module, *others: tf.Variable) -> None:
        """Copies the chief's variables to all learners, so that only the chief needs a checkpoint file."""
        variables = [*variables_of(root), *others]

        def chiefs(variable: tf.Variable) -> tf.Tensor:
            is_chiefs = tf.distribute.get_replica_context().replica_id_in_sync_group == 0
            value = tf.cast(variable, tf.int32) if variable.dtype.is_bool else variable
            return tf.where(is_chiefs, value, tf.zeros_like(value))

        @tf.function(autograph=False)
        def assign_all() -> None:
            for variable in variables:
                values = self.strategy.run(chiefs, args=(variable,))
                value = self.strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)
                variable.assign(tf.cast(value, variable.dtype))

        with self.strategy.scope():
            assign_all()


def join_group(config: Config, stop: Stop) -> LearnerGroup | None:
    """Makes the learner's strategy; in a group, waits for the other learners.

    Call it before any other TensorFlow call.

    Returns:
      The group; None if a stop was requested meanwhile.

    Raises:
      ConfigurationError: TF_CONFIG or the strategy cannot work, or the chief belongs to another run.
      RunError: another learner did not connect in time.
    """
    learn = config.learn
    cluster = learner_cluster(config)
    if cluster is None:
        return LearnerGroup(make_strategy(learn.strategy, learn.batch_size), stop)
    check_group_batch(cluster, learn.batch_size)
    if len(cluster.addresses) == 1:
        return LearnerGroup(make_group_strategy(cluster), stop)
    link = GroupLink(cluster, fingerprint(config), stop, end_failed)
    try:
        if not link.gather():
            link.close()
            return None
        strategy = make_group_strategy(cluster)
        link.begin()
    except Exception as error:
        link.close(_reason(error))
        raise
    return MultiWorkerGroup(strategy, stop, cluster, link)


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, RunError) else one_line(error)


def variables_of(root: tf.Module) -> list[tf.Variable]:
    """Returns all variables in a checkpoint of `root`, in the same order in every process."""
    found: dict[int, tf.Variable] = {}
    for part in tf.train.TrackableView(root).descendants():
        # The slots of an optimiser are not among its children.
        held: list[Any] = (
            part.variables() if isinstance(part, tf.keras.optimizers.legacy.Optimizer) else [part]
        )
        found |= {id(variable): variable for variable in held if isinstance(variable, tf.Variable)}
    return list(found.values())
