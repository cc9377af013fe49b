"""How a role tells the process that started it how it is doing: JSON lines on an inherited pipe.

Only local mode listens; a role started by hand has nobody to tell. Nothing depends on it but the view.
"""

import contextlib
import json
import logging
import os
from collections.abc import Callable

_log = logging.getLogger(__name__)

NOTIFY_VARIABLE = "ACTORLEARNER_NOTIFY_FD"
"""The environment variable with the number of the pipe's file descriptor."""


_listeners: list[Callable[[str], None]] = []


def is_supervised() -> bool:
    """Whether somebody listens."""
    return NOTIFY_VARIABLE in os.environ


def notify(state: str, message: str = "") -> None:
    """Tells how the role is doing, with a message.

    Args:
      state: `ready`; `started` what it waited to start; `said`, for those who watch; `failed`, as it would
        again; or `crashed`, which it may not do again.
      message: more about it.
    """
    if is_supervised():
        line = json.dumps({"state": state, "message": message}) + "\n"
        # If the listener is gone, its death signal is on its way.
        with contextlib.suppress(BrokenPipeError):
            os.write(int(os.environ[NOTIFY_VARIABLE]), line.encode())


def warn(line: str) -> None:
    """Warns whoever watches: one line in the log, on the terminal of local mode, and to all listeners."""
    _log.warning("%s", line)
    notify("said", line)
    for listener in _listeners:
        listener(line)


def listen(listener: Callable[[str], None]) -> None:
    """Has `listener` called with whatever this process says from now on, in the thread that says it."""
    _listeners.append(listener)
