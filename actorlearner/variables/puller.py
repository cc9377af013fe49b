"""Pulls policy variables in a background thread, so that acting never waits for them."""

import logging
import threading
import time

import reverb

from actorlearner.process.stop import Stop
from actorlearner.process.waiting import WaitReport
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.variables.container import PolicyOrder, PolicyVariables, VariableContainer

_log = logging.getLogger(__name__)

_TIMEOUT_S = 5
_FIRST_INTERVAL_S = 1.0


class VariablePuller:
    """Polls for a new version every `interval_s` (for the first one, at least every second), and pulls it."""

    def __init__(self, address: str, interval_s: float, stop: Stop, run_id: str | None = None) -> None:
        """Starts the thread, which ends at `stop`; a `run_id` of None accepts the server of any run."""
        self._container = VariableContainer(reverb.Client(address), run_id)
        self._interval_s = interval_s
        self._stop = stop
        self._lock = threading.Lock()
        self._fresh: PolicyVariables | None = None
        self._fresh_since = self._taken_since = time.monotonic()
        self._train_step = -1
        self._order = PolicyOrder(-1, -1)
        self._failure: BaseException | None = None
        # A daemon, because it may be blocked by a server that does not answer.
        threading.Thread(target=self._pull_until_stopped, name="variables", daemon=True).start()

    @property
    def train_step(self) -> int:
        """The train step of the newest version pulled; -1 before the first.

        Raises:
          RunError: a server of another run has replaced this run's.
        """
        self._raise_failure()
        return self._train_step

    @property
    def age_s(self) -> float:
        """Seconds since the pull of the version that was taken last; since the start before the first."""
        return time.monotonic() - self._taken_since

    def take(self) -> PolicyVariables | None:
        """Returns the newest version; None if it was taken before. Does not block; raises as `train_step`."""
        self._raise_failure()
        if self._fresh is None:
            return None
        with self._lock:
            fresh, self._fresh = self._fresh, None
            self._taken_since = self._fresh_since
        return fresh

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _pull_until_stopped(self) -> None:
        try:
            self._poll_until_stopped()
        except Exception as error:
            self._failure = error  # Raised again in the acting thread, which ends the role.

    def _poll_until_stopped(self) -> None:
        seen = 0
        report = WaitReport()
        interval_s = 0.0
        while not self._stop.wait(interval_s):
            try:
                versions = self._container.status(_TIMEOUT_S).versions
                if versions not in (0, seen):  # 0 if a restarted server is empty.
                    self._keep(self._container.pull())
                seen, report = versions, WaitReport()
            except UNREACHABLE:
                report.log("policy variables: the replay server does not answer")
                seen = 0  # A restarted server counts from 0 and may reach the same number.
            first = self._train_step < 0
            interval_s = min(self._interval_s, _FIRST_INTERVAL_S) if first else self._interval_s

    def _keep(self, version: PolicyVariables) -> None:
        """Keeps a version if it is newer than the last one; a restored replay server may have older ones."""
        if version.order <= self._order:
            return
        if version.train_step < self._train_step:
            _log.warning("a restarted learner is at train step %d", version.train_step)
        self._order = version.order
        with self._lock:
            self._fresh = version
            self._train_step = version.train_step
            self._fresh_since = time.monotonic()
