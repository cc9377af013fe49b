"""Finds the generation of the learner that published before this one."""

import logging

import reverb

from actorlearner.process.stop import Stop
from actorlearner.process.waiting import wait_until
from actorlearner.replay.connection import CONNECT_DEADLINE_S
from actorlearner.replay.reverb_calls import UNREACHABLE, within
from actorlearner.variables.container import VariableContainer

_log = logging.getLogger(__name__)

_STATUS_TIMEOUT_S = 5
_PULL_TIMEOUT_S = 30.0


def published_generation(client: reverb.Client, stop: Stop) -> int:
    """Returns the generation of the learner that published last; -1 if none has, or at a stop.

    Blocks until the replay server answers, up to CONNECT_DEADLINE_S: it may be saving or restarting.

    Args:
      client: a client of the replay server.
      stop: ends the wait.

    Raises:
      RunError: the server does not answer in time.
    """
    told = [-1]

    def has_told() -> bool:
        container = VariableContainer(client)
        try:
            if container.version(_STATUS_TIMEOUT_S):
                newest = within(_PULL_TIMEOUT_S, container.pull)
                _log.warning(
                    "this learner takes over from one that had published train step %d", newest.train_step
                )
                told.append(newest.generation)
        except UNREACHABLE:
            return False
        return True

    what = "the replay server to tell which learner published last"
    wait_until(what, has_told, stop, deadline_s=CONNECT_DEADLINE_S)
    return told[-1]
