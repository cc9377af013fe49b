"""Publishes the policy variables to the variable container, off the training thread."""

import collections
import threading

import reverb
import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.errors import RunError
from actorlearner.finite import all_finite
from actorlearner.variables.container import EvaluationRequest, PolicyVariables, VariableContainer


class Publisher:
    """Copies variables when it is told to, and pushes them on a thread of its own.

    Of the versions for acting only the newest counts: one that training overtakes is never pushed.
    Versions for evaluation are all pushed, in order.
    """

    def __init__(self, client: reverb.Client, parts: AgentParts) -> None:
        """Starts the thread; it ends with the process."""
        self._container = VariableContainer(client)
        self._variables = parts.policy_variables
        self._train_step = parts.train_step
        self._newest: PolicyVariables | None = None
        self._evaluations: collections.deque[EvaluationRequest] = collections.deque()
        self._pushing = False
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        # A daemon, because a push to a server that is away does not return.
        threading.Thread(target=self._push_for_ever, name="publisher", daemon=True).start()

    def publish(self) -> None:
        """Makes this train step's variables the newest. Does not block.

        Raises:
          RunError: the variables are not finite; actors keep the version before.
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
          RunError: the variables are not finite; actors keep the version before.
          Exception: what an earlier push raised.
        """
        request = EvaluationRequest(self._version(), env_steps)
        with self._changed:
            self._raise_failure()
            self._evaluations.append(request)
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Waits until the server has everything; returns False if that took longer than `timeout_s`.

        Raises:
          Exception: what a push raised.
        """
        with self._changed:
            done = self._changed.wait_for(lambda: self._failure or not self._pending, timeout_s)
            self._raise_failure()
            return bool(done)

    @property
    def _pending(self) -> bool:
        return self._pushing or self._newest is not None or bool(self._evaluations)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _version(self) -> PolicyVariables:
        values = [tf.convert_to_tensor(variable).numpy() for variable in self._variables]
        train_step = int(self._train_step.numpy())
        if not all_finite(values):
            raise RunError(f"the policy of train step {train_step} has weights that are NaN or infinite")
        return PolicyVariables(train_step, values)

    def _push_for_ever(self) -> None:
        try:
            while True:
                self._push_next()
        except Exception as error:
            with self._changed:
                self._failure = error  # Raised again on the training thread.
                self._changed.notify_all()

    def _push_next(self) -> None:
        with self._changed:
            self._pushing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._newest is not None or self._evaluations)
            self._pushing = True
            request = self._evaluations.popleft() if self._evaluations else None
            newest = None
            if request is None:
                newest, self._newest = self._newest, None
        if request is not None:
            self._container.push_evaluation(request)
        elif newest is not None:
            self._container.push(newest)
