"""The end of the learner and of the replay server, which may take minutes to save."""

import time
from collections.abc import Callable

from actorlearner.local.child import SupervisedProcess
from actorlearner.process.heartbeat import LONG_PATIENCE_S, is_overdue
from actorlearner.process.role_names import LEARNER, REPLAY_SERVER
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory

_NOTICE_S = 3.0
_POLL_INTERVAL_S = 0.25
_SAVED = {
    LEARNER: ("the learner ends its train step and saves", "the train steps since the last checkpoint"),
    REPLAY_SERVER: ("saving replay", "the transitions since the last checkpoint"),
}
"""For each role: its work after SIGTERM, and the data that it loses if it is killed before the end."""


def wait_saved(
    child: SupervisedProcess, directory: RunDirectory, stop: Stop, report: Callable[[str], None]
) -> None:
    """Waits until the learner or the replay server, which got a SIGTERM, has saved and ended.

    A call of the training graph may last a minute, and replay may be many gigabytes. The role is killed if
    its heartbeat is overdue, after 15 minutes, or at a SIGINT once `report` has announced the wait.
    """
    began = time.time()
    if child.wait(_NOTICE_S):
        return
    interrupts = stop.interrupts
    doing, lost = _SAVED[child.name]
    report(f"{doing}; Ctrl-C gives up, and loses {lost}")
    deadline = time.monotonic() + LONG_PATIENCE_S
    while not child.wait(_POLL_INTERVAL_S):
        late = time.monotonic() >= deadline or is_overdue(directory.heartbeat(child.name), began)
        if late or stop.interrupts > interrupts:
            child.kill()
            report(f"the {child.name} did not save: {lost} are lost")
            return
