"""Keeps the last policies of a run at the replay server after the learner has ended."""

import logging
import time
from collections.abc import Callable

import reverb

from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.variables.container import VariableContainer

_log = logging.getLogger(__name__)

_TIMEOUT_S = 5
_RETRY_S = 5.0


class LastPolicies:
    """Preserves the last policies across restarts of the server: no learner is left to publish them again.

    After its last policies, the learner announces the end of the run and waits. The replay server writes a
    checkpoint and confirms the end; a restarted server restores the policies from it.
    """

    def __init__(self, client: reverb.Client, train_steps: int, save: Callable[[], bool]) -> None:
        """Does not read or save yet.

        Args:
          client: a client of the replay server in this process.
          train_steps: the train steps of the run.
          save: writes a checkpoint of the replay server; returns whether it was written.
        """
        self._container = VariableContainer(client)
        self._train_steps = train_steps
        self._save = save
        self._retry_at = 0.0

    def remove_outdated(self, *, learner_rolls_back: bool) -> None:
        """Removes the policies of the restored checkpoint, unless they are the last ones of the run.

        A learner that still trains publishes its policy again, which is newer than the restored one. Until
        then, a starting actor must wait, instead of acting with the older policy.

        Args:
          learner_rolls_back: whether the learner will resume before the last train step. The restored last
            policies are then removed too: they would make the actors end.

        Raises:
          reverb_calls.UNREACHABLE: the server does not answer.
        """
        newest = self._container.newest(_TIMEOUT_S)
        if learner_rolls_back or newest is None or newest.train_step < self._train_steps:
            self._container.clear()
        else:
            _log.info("restored the policies of the last train step, %d", newest.train_step)

    def save_once_published(self) -> None:
        """Saves the last policies and confirms the end of the run, once the learner has announced it.

        Blocks while a checkpoint is written. A failed write is repeated after _RETRY_S.
        """
        if time.monotonic() < self._retry_at:
            return
        try:
            end = self._container.end(_TIMEOUT_S)
            if end is None or end.saved:
                return
            newest = self._container.newest(_TIMEOUT_S)
            if newest is None or newest.order < end.order:
                return  # A restart has lost the policies; the learner publishes them again.
            if self._save():
                self._container.push_end(end._replace(saved=True))
                return
        except UNREACHABLE:
            _log.warning("this server did not return the last policies in time")
        self._retry_at = time.monotonic() + _RETRY_S
