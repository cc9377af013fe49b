"""Publishes the policy variables to the variable container, off the training thread."""

import collections
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence

import reverb
import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.environments.finite import all_finite
from actorlearner.errors import RunError, one_line
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import WaitReport, wait_until
from actorlearner.records.notify import warn
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.variables.container import (
    EVALUATIONS_KEPT,
    EvaluationRequest,
    PolicyOrder,
    PolicyVariables,
    RunEnd,
    VariableContainer,
)

_log = logging.getLogger(__name__)

_POLL_INTERVAL_S = 1.0
"""Seconds between two polls of the container."""

_TIMEOUT_S = 5
_DELIVERED_TIMEOUT_S = 2
"""Shorter than _TIMEOUT_S, because the calling thread must react to a stop."""

_RETRY_S = 0.5


class Publisher:
    """Copies the policy variables when requested, and pushes them to the container on a thread.

    All versions for evaluation are pushed, in order. Of the versions for acting, a newer version replaces one
    that still waits. The end of the run is announced last. Versions that a restarted replay server has lost
    are pushed again.

    Methods do not block unless their docstring says so. An error of the thread is raised by the next call of
    `check`, `publish`, `queue`, `finish`, `delivered` or `flush`; it is a RunError if another learner has
    taken over the run. Methods that poll the server raise a RunError if it serves another run now.
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
        # Waiting to be pushed.
        self._evaluations: collections.deque[EvaluationRequest] = collections.deque()
        self._newest: PolicyVariables | None = None
        self._end: RunEnd | None = None
        # Pushed, and kept for a server that restarts and loses them.
        self._evaluations_pushed: collections.deque[EvaluationRequest] = collections.deque(
            maxlen=EVALUATIONS_KEPT
        )
        self._newest_pushed: PolicyVariables | None = None
        self._end_pushed: RunEnd | None = None
        self._versions = 0  # The number that the container should report; a smaller number shows a restart.
        self._changed = threading.Condition()
        self._failure: Exception | None = None
        self._warned = False
        # A daemon, because it may be blocked by a server that does not answer.
        threading.Thread(target=self._push_until_failure, name="publisher", daemon=True).start()

    def check(self) -> None:
        """Raises the error of the thread, if any."""
        if self._failure is not None:
            raise self._failure

    def publish(self) -> None:
        """Publishes this train step's variables to the actors.

        Raises:
          RunError: the variables are not finite, and actors keep the previous version.
        """
        version = self._copy()
        self.check()
        with self._changed:
            self._newest = version
            self._changed.notify_all()

    def make_request(self, env_steps: int) -> EvaluationRequest:
        """Copies this train step's variables, for `queue`; `env_steps` are those of all actors so far.

        Raises:
          RunError: the variables are not finite.
        """
        return EvaluationRequest(self._copy(), env_steps)

    def queue(self, requests: Sequence[EvaluationRequest]) -> None:
        """Queues versions for evaluation."""
        self.check()
        with self._changed:
            self._evaluations.extend(requests)
            self._changed.notify_all()

    def replace_queue(self, pending_evaluations: Sequence[EvaluationRequest], stop: Stop) -> None:
        """Replaces the server's queue of evaluations by this learner's `pending_evaluations`.

        The server's queue may hold train steps after the checkpoint, which were rolled back and will be taken
        again. Blocks until the server has emptied its queue; after a stop nothing is queued.
        """

        def dropped() -> bool:
            try:
                self._container.status(_TIMEOUT_S)  # Fails sooner than the next call.
                self._container.clear_evaluations()
            except UNREACHABLE:
                return False
            return True

        what = "the replay server to drop the evaluations that an earlier learner queued"
        if wait_until(what, dropped, stop, deadline_s=None, interval_s=_RETRY_S):
            self.queue(pending_evaluations)

    def pending_evaluations(self) -> list[EvaluationRequest]:
        """Returns the requests whose evaluation may be unfinished, in order; blocks for up to _TIMEOUT_S."""
        with self._changed:
            pushed, queued = list(self._evaluations_pushed), list(self._evaluations)
        waiting = len(pushed)  # An upper bound, if the server does not answer or has lost requests.
        with contextlib.suppress(*UNREACHABLE):
            status = self._container.status(_TIMEOUT_S)
            if status.versions >= max(1, self._versions):
                waiting = status.evaluations_waiting
        return pushed[max(0, len(pushed) - waiting) :] + queued

    def finish(self) -> None:
        """Queues the announcement that this train step is the last one, after everything queued before."""
        self.check()
        with self._changed:
            self._end = RunEnd(PolicyOrder(self._generation, int(self._train_step.numpy())))
            self._changed.notify_all()

    def delivered(self) -> bool:
        """Returns whether the server has stored everything, and has confirmed the end of the run.

        Blocks for up to _DELIVERED_TIMEOUT_S if the server does not answer, and for up to 30 s if the server
        ends between the two calls of `VariableContainer.end`.
        """
        self.check()
        with self._changed:
            announced = None if self._pending else self._end_pushed
        if announced is None:
            return False
        try:
            end = self._container.end(_DELIVERED_TIMEOUT_S)
        except UNREACHABLE:
            return False
        if end is None:  # The server has restored a checkpoint with everything but the announcement.
            self.finish()
            return False
        return end.saved and end.order >= announced.order

    def flush(self, timeout_s: float) -> bool:
        """Waits until the server has stored everything; returns False if that takes longer."""
        with self._changed:
            done = self._changed.wait_for(lambda: self._failure or not self._pending, timeout_s)
        self.check()
        return bool(done)

    @property
    def _pending(self) -> bool:
        """Whether something is queued or being pushed."""
        return bool(self._evaluations or self._newest or self._end)

    def _copy(self) -> PolicyVariables:
        values = [tf.convert_to_tensor(variable).numpy() for variable in self._variables]
        train_step = int(self._train_step.numpy())
        if not all_finite(values):
            raise RunError(f"the policy of train step {train_step} has weights that are NaN or infinite")
        return PolicyVariables(train_step, values, self._generation)

    def _push_until_failure(self) -> None:
        report = WaitReport()
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._pending, _POLL_INTERVAL_S)
                try:
                    # Before every push: what a restarted server has lost must come first, and this call fails
                    # sooner than a push if the server does not answer.
                    self._poll()
                    self._push_next()
                    report = WaitReport()
                except UNREACHABLE as error:
                    if self._pending:
                        report.log(f"the replay server to take the policy variables ({one_line(error)})")
                    time.sleep(_RETRY_S)  # Some failures are immediate.
        except Exception as error:
            with self._changed:
                self._failure = error  # Raised again on the training thread.
                self._changed.notify_all()

    def _push_next(self) -> None:
        """Pushes the next evaluation, version or end, if any; pushing twice does no harm."""
        with self._changed:
            request = self._evaluations[0] if self._evaluations else None
            newest, end = self._newest, self._end
        # Entries stay queued until the server has stored them: `pending_evaluations` must not miss one.
        if request is not None:
            self._warn_of_slow_evaluations()
            self._container.push_evaluation(request)
            with self._changed:
                self._evaluations_pushed.append(self._evaluations.popleft())
        elif newest is not None:
            self._container.push(newest)
            self._versions += 1
            # Once for each version: a restarted server and the end of training push it again.
            if self._newest_pushed is None or newest.order > self._newest_pushed.order:
                self._published(newest)
            with self._changed:
                self._newest_pushed = newest
                if self._newest is newest:
                    self._newest = None
        elif end is not None:
            self._container.push_end(end)
            with self._changed:
                self._end_pushed, self._end = end, None
        with self._changed:
            self._changed.notify_all()

    def _warn_of_slow_evaluations(self) -> None:
        """Warns once if the server's queue is full, so that it will drop an evaluation."""
        if len(self._evaluations_pushed) == EVALUATIONS_KEPT and not self._warned:
            self._warned = True
            warn(
                f"{EVALUATIONS_KEPT} policies wait for their evaluation, and further ones replace the "
                "oldest: raise evaluate.interval, or lower evaluate.episodes"
            )

    def _poll(self) -> None:
        """Queues again what a restarted server has lost; raises a RunError if another learner took over."""
        versions, waiting = self._container.status(_TIMEOUT_S)
        newest = self._container.pull() if versions > self._versions else None
        if newest is not None and newest.generation > self._generation:
            raise RunError(
                f"another learner, which is at train step {newest.train_step}, has taken over this run"
            )
        # A restarted server gets the evaluations first. If it restarts again before it has the newest
        # version, only missing evaluations show this.
        lost = versions < self._versions or (versions == 0 and waiting < len(self._evaluations_pushed))
        self._versions = versions
        if lost:
            self._queue_again()
            return
        with self._changed:  # Drops the versions that were evaluated: each is a whole policy in memory.
            while len(self._evaluations_pushed) > waiting:
                self._evaluations_pushed.popleft()

    def _queue_again(self) -> None:
        """Queues everything that a restarted server has lost, before everything that is queued already."""
        _log.warning("the replay server restarted: publishing the policy variables again")
        with self._changed:
            # `_poll` counts only the newest version: a server that has it has the evaluations, too.
            self._evaluations.extendleft(reversed(self._evaluations_pushed))
            self._evaluations_pushed.clear()
            self._newest = self._newest or self._newest_pushed
            self._end = self._end or self._end_pushed
