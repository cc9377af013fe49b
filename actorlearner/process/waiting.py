"""Waits that log what they wait for and may have a deadline."""

import logging
import time
from collections.abc import Callable

from actorlearner.errors import RunError
from actorlearner.process.heartbeat import beat
from actorlearner.process.stop import Stop

_log = logging.getLogger(__name__)

_REPORT_INTERVAL_S = 10.0


class WaitReport:
    """Logs what a process waits for, every ten seconds; logs nothing if the wait is shorter."""

    def __init__(self) -> None:
        """Starts the wait."""
        self._started = time.monotonic()
        self._logged = self._started

    @property
    def waited_s(self) -> float:
        """Seconds since the wait began."""
        return time.monotonic() - self._started

    def log(self, what: str | Callable[[], str]) -> None:
        """Logs `what`, or the text it returns, unless something was logged in the last ten seconds."""
        if time.monotonic() - self._logged >= _REPORT_INTERVAL_S:
            text = what if isinstance(what, str) else what()
            _log.warning("waiting for %s, for %.0f s so far", text, self.waited_s)
            self._logged = time.monotonic()


def wait_for_room(what: str, write: Callable[[], bool], stop: Stop) -> bool:
    """Blocks until `write` succeeds, retrying every second on a full disk; returns False at a stop."""
    return wait_until(f"room on the disk for {what}", write, stop, deadline_s=None, interval_s=1.0)


def wait_until(
    what: str | Callable[[], str],
    condition: Callable[[], bool],
    stop: Stop,
    *,
    deadline_s: float | None,
    interval_s: float = 0.1,
) -> bool:
    """Polls `condition` until it holds, and writes heartbeats; for the thread that does a role's work.

    Args:
      what: completes "waiting for ..."; a text, or a function that returns one.
      condition: returns whether the wait is over; its own calls should have deadlines.
      stop: ends the wait.
      deadline_s: seconds after which the wait fails; None waits for ever.
      interval_s: seconds between two polls.

    Returns:
      Whether the condition holds; False only if a stop was requested.

    Raises:
      RunError: the deadline passed.
    """
    report = WaitReport()
    while not condition():
        text = what if isinstance(what, str) else what()
        if deadline_s is not None and report.waited_s >= deadline_s:
            raise RunError(f"gave up waiting for {text} after {report.waited_s:.0f} s")
        report.log(text)
        beat(f"waiting for {text}")
        if stop.wait(interval_s):
            return False
    return True
