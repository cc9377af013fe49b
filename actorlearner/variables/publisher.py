"""Publishes the policy variables to the variable container, off the training thread."""

import collections
import logging
import threading
import time
from collections.abc import Callable, Sequence

import reverb
import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.environments.finite import all_finite
from actorlearner.errors import RunError, one_line
from actorlearner.process.heartbeat import beat
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import WaitReport
from actorlearner.replay.reverb_calls import UNREACHABLE, within
from actorlearner.variables.container import (
    EVALUATIONS_KEPT,
    EvaluationRequest,
    PolicyOrder,
    PolicyVariables,
    RunEnd,
    VariableContainer,
)

_log = logging.getLogger(__name__)

_LOOK_INTERVAL_S = 1.0
"""Seconds between two polls of the container while there is nothing to push."""

_TIMEOUT_S = 5
_DELIVERED_TIMEOUT_S = 2
"""Shorter than the others: the calling thread is the one that must react to a stop."""

_PUSH_TIMEOUT_S = 30.0
_RETRY_S = 0.5
_VARIABLES = "to take the policy variables"


class Publisher:
    """Copies the policy variables when requested, and pushes them in a thread of its own.

    Of the versions for acting only the newest is pushed; a version that training overtakes is dropped.
    Versions for evaluation are all pushed, in order, and the end of the run is announced after them. A
    restarted replay server that has lost the last versions gets them again.
    """

    def __init__(
        self,
        client: reverb.Client,
        parts: AgentParts,
        generation: int = 0,
        run_id: str | None = None,
        published: Callable[[PolicyVariables], None] = lambda version: None,
    ) -> None:
        """Starts the thread; it ends with the process.

        Args:
          client: a client of the replay server.
          parts: the agent whose policy is published.
          generation: this learner's generation, see PolicyVariables.
          run_id: the expected run id; None accepts any.
          published: called in the thread with each version for acting that the server has stored.
        """
        self._container = VariableContainer(client, run_id)
        self._variables = parts.policy_variables
        self._train_step = parts.train_step
        self._generation = generation
        self._published = published
        self._newest: PolicyVariables | None = None
        self._pushed: PolicyVariables | None = None
        self._evaluations: collections.deque[EvaluationRequest] = collections.deque()
        self._evaluations_pushed: collections.deque[EvaluationRequest] = collections.deque(
            maxlen=EVALUATIONS_KEPT
        )
        self._ending: RunEnd | None = None
        self._end_pushed: RunEnd | None = None
        self._versions = 0  # The count that the container should report, as far as this learner knows.
        self._pushing = False
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        # A daemon, because it may be blocked by a server that does not answer.
        threading.Thread(target=self._push_for_ever, name="publisher", daemon=True).start()

    def publish(self) -> None:
        """Makes this train step's variables the newest. Does not block.

        Raises:
          RunError: the variables are not finite, and actors keep the previous version; or another learner has
            taken over the run.
          Exception: what an earlier push raised.
        """
        version = self._version()
        with self._changed:
            self._raise_failure()
            self._newest = version
            self._changed.notify_all()

    def publish_for_evaluation(self, env_steps: int) -> None:
        """Queues this train step's variables for evaluation. Does not block.

        Args:
          env_steps: env steps of all actors so far.

        Raises:
          RunError: as `publish`.
          Exception: what an earlier push raised.
        """
        self.queue([self.request(env_steps)])

    def request(self, env_steps: int) -> EvaluationRequest:
        """Copies this train step's variables, for `queue`.

        Raises:
          RunError: the variables are not finite.
        """
        return EvaluationRequest(self._version(), env_steps)

    def queue(self, requests: Sequence[EvaluationRequest]) -> None:
        """Queues versions for evaluation. Does not block.

        Raises:
          Exception: what an earlier push raised.
        """
        with self._changed:
            self._raise_failure()
            self._evaluations.extend(requests)
            self._changed.notify_all()

    def take_over(self, pending_evaluations: Sequence[EvaluationRequest], stop: Stop) -> None:
        """Replaces the evaluations queued at the server by those of this learner's checkpoint.

        The queued ones may belong to train steps after the checkpoint, which were rolled back and will be
        repeated. Blocks until the queue is empty, however long the server does not answer, or until a stop.

        Args:
          pending_evaluations: the evaluations to queue.
          stop: ends the wait; nothing is queued then.

        Raises:
          Exception: what an earlier push raised.
        """
        what = "to drop the evaluations that an earlier learner queued"
        if self._until_taken(what, self._container.forget_evaluations, stop):
            self.queue(pending_evaluations)

    def pending_evaluations(self) -> list[EvaluationRequest]:
        """Returns the versions that may not be evaluated yet, in order; blocks for up to _TIMEOUT_S."""
        with self._changed:
            pushed, queued = list(self._evaluations_pushed), list(self._evaluations)
        try:
            waiting = self._container.evaluations_waiting(_TIMEOUT_S)
        except UNREACHABLE:
            waiting = len(pushed)  # An upper bound.
        return pushed[max(0, len(pushed) - waiting) :] + queued

    def finish(self) -> None:
        """Announces, after everything queued, that this train step is the last one. Does not block.

        Raises:
          Exception: what an earlier push raised.
        """
        end = RunEnd(PolicyOrder(self._generation, int(self._train_step.numpy())))
        with self._changed:
            self._raise_failure()
            self._ending = end
            self._changed.notify_all()

    def delivered(self) -> bool:
        """Returns whether the server has stored and saved everything up to the end of the run.

        Blocks while the server does not answer, see `VariableContainer.end`.

        Raises:
          Exception: what a push raised.
        """
        with self._changed:
            self._raise_failure()
            announced = None if self._pending else self._end_pushed
        if announced is None:
            return False
        try:
            end = self._container.end(_DELIVERED_TIMEOUT_S)
        except UNREACHABLE:
            return False
        return end is not None and end.saved and end.order >= announced.order

    def flush(self, timeout_s: float) -> bool:
        """Waits until the server has stored everything; returns False if that takes longer than `timeout_s`.

        Raises:
          Exception: what a push raised.
        """
        with self._changed:
            done = self._changed.wait_for(lambda: self._failure or not self._pending, timeout_s)
            self._raise_failure()
            return bool(done)

    @property
    def _pending(self) -> bool:
        return self._pushing or self._wanted

    @property
    def _wanted(self) -> bool:
        return self._newest is not None or bool(self._evaluations) or self._ending is not None

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _version(self) -> PolicyVariables:
        values = [tf.convert_to_tensor(variable).numpy() for variable in self._variables]
        train_step = int(self._train_step.numpy())
        if not all_finite(values):
            raise RunError(f"the policy of train step {train_step} has weights that are NaN or infinite")
        return PolicyVariables(train_step, values, self._generation)

    def _push_for_ever(self) -> None:
        looked = time.monotonic()
        try:
            while True:
                if self._wait_for_work():
                    self._push_next()
                if time.monotonic() - looked >= _LOOK_INTERVAL_S:
                    self._look()
                    looked = time.monotonic()
        except Exception as error:
            with self._changed:
                self._failure = error  # Raised again on the training thread.
                self._changed.notify_all()

    def _wait_for_work(self) -> bool:
        """Waits for work; returns False if there is none within _LOOK_INTERVAL_S."""
        with self._changed:
            self._pushing = False
            self._changed.notify_all()
            self._pushing = self._changed.wait_for(lambda: self._wanted, _LOOK_INTERVAL_S)
            return self._pushing

    def _push_next(self) -> None:
        with self._changed:
            request = self._evaluations[0] if self._evaluations else None
            newest = None
            if request is None:
                newest, self._newest = self._newest, None
        if request is not None:
            self._push_evaluation(request)
            with self._changed:  # Atomic: `pending_evaluations` must find it in one of the two.
                self._evaluations_pushed.append(self._evaluations.popleft())
        elif newest is not None:
            self._push(newest)
            self._published(newest)
        elif self._ending is not None:
            self._push_end(self._ending)
            with self._changed:
                self._end_pushed, self._ending = self._ending, None

    def _push(self, version: PolicyVariables) -> None:
        self._until_taken(_VARIABLES, lambda: self._container.push(version))
        self._pushed = version
        self._versions += 1

    def _push_evaluation(self, request: EvaluationRequest) -> None:
        self._until_taken(_VARIABLES, lambda: self._container.push_evaluation(request))

    def _push_end(self, end: RunEnd) -> None:
        self._until_taken("to take the end of the run", lambda: self._container.push_end(end))

    def _until_taken(self, what: str, push: Callable[[], None], stop: Stop | None = None) -> bool:
        """Pushes until it succeeds, however long the server does not answer; pushing twice does no harm.

        Pauses _RETRY_S between two attempts, because some failures are immediate.

        Args:
          what: completes "waiting for the replay server ..." in messages.
          push: the call.
          stop: ends the wait; for callers in the thread that does the role's work.

        Returns:
          Whether it succeeded; False only at a stop.
        """
        report = WaitReport()
        while True:
            try:
                # It has a deadline; a push to a server that does not answer has none.
                self._container.version(_TIMEOUT_S)
                within(_PUSH_TIMEOUT_S, push)
                return True
            except UNREACHABLE as error:
                report.log(f"the replay server {what} ({one_line(error)})")
            if stop is None:
                time.sleep(_RETRY_S)
                continue
            beat(f"waiting for the replay server {what}")
            if stop.wait(_RETRY_S):
                return False

    def _look(self) -> None:
        """Checks whether the server still has what was pushed, and whether another learner pushes."""
        try:
            versions, waiting = self._container.status(_TIMEOUT_S)
            newest = within(_PUSH_TIMEOUT_S, self._container.pull) if versions > self._versions else None
        except UNREACHABLE:
            return  # The next push reports it.
        if newest is not None and newest.generation > self._generation:
            raise RunError(
                f"another learner, which is at train step {newest.train_step}, has taken over this run"
            )
        lost = versions < self._versions
        self._versions = versions
        if not lost:
            self._forget_evaluated(waiting)
        elif self._pushed is not None:
            _log.warning("the replay server was started again: it gets the policy variables again")
            # The newest version comes after the evaluations: a server that has it has all of them.
            for request in self._evaluations_pushed:
                self._push_evaluation(request)
            self._push(self._pushed)
            if self._end_pushed is not None:
                self._push_end(self._end_pushed)

    def _forget_evaluated(self, waiting: int) -> None:
        """Drops the versions that were evaluated: each is a whole policy in memory."""
        with self._changed:
            while len(self._evaluations_pushed) > waiting:
                self._evaluations_pushed.popleft()
