"""Reports of a role to the process that started it: JSON lines on an inherited pipe.

Only local mode reads them. A role started by hand reports nothing.
"""

import contextlib
import json
import logging
import os
from collections.abc import Callable

_log = logging.getLogger(__name__)

NOTIFY_VARIABLE = "ACTORLEARNER_NOTIFY_FD"
"""Environment variable with the number of the pipe's file descriptor."""

_listeners: list[Callable[[str], None]] = []


def is_supervised() -> bool:
    """Whether local mode started this process and reads its reports."""
    return NOTIFY_VARIABLE in os.environ


def notify(state: str, message: str = "") -> None:
    """Reports a state to local mode; a no-op if local mode did not start this process.

    Args:
      state: `ready`; `started` (its main work has begun); `warning` (`message` is its text); `failed` (a
        restart would fail again); or `crashed` (a restart may succeed).
      message: details.
    """
    if is_supervised():
        line = json.dumps({"state": state, "message": message}) + "\n"
        # If local mode is gone, this process is about to receive a signal.
        with contextlib.suppress(BrokenPipeError):
            os.write(int(os.environ[NOTIFY_VARIABLE]), line.encode())


def warn(line: str) -> None:
    """Warns with one line: in the log, on the terminal of local mode, and to all listeners."""
    _log.warning("%s", line)
    notify("warning", line)
    for listener in _listeners:
        listener(line)


def on_warning(listener: Callable[[str], None]) -> None:
    """Calls `listener` with each later warning of this process, in the thread that warns."""
    _listeners.append(listener)
