"""Pulls policy variables on a background thread, so that acting never waits for them."""

import logging
import threading
import time

import reverb

from actorlearner.reverb_calls import UNREACHABLE
from actorlearner.stop import Stop
from actorlearner.variables.container import PolicyVariables, VariableContainer
from actorlearner.waiting import WaitReport

_log = logging.getLogger(__name__)

_TIMEOUT_S = 5


class VariablePuller:
    """Looks for a newer version every `interval_s` and pulls it only if there is one."""

    def __init__(self, address: str, interval_s: float, stop: Stop) -> None:
        """Starts the thread; it ends with the process or at `stop`."""
        self._container = VariableContainer(reverb.Client(address))
        self._interval_s = interval_s
        self._stop = stop
        self._lock = threading.Lock()
        self._fresh: PolicyVariables | None = None
        self._pulled_at = time.monotonic()
        self._train_step = -1
        self._failure: BaseException | None = None
        # A daemon, because a pull from a server that died meanwhile never returns.
        threading.Thread(target=self._pull_for_ever, name="variables", daemon=True).start()

    @property
    def train_step(self) -> int:
        """The train step of the newest version pulled; -1 before the first."""
        return self._train_step

    @property
    def age_s(self) -> float:
        """Seconds since the newest version was pulled."""
        return time.monotonic() - self._pulled_at

    def take(self) -> PolicyVariables | None:
        """The newest version, if it was not taken before. Does not block."""
        if self._failure is not None:
            raise self._failure
        if self._fresh is None:
            return None
        with self._lock:
            fresh, self._fresh = self._fresh, None
        return fresh

    def _pull_for_ever(self) -> None:
        try:
            self._pull_until_stopped()
        except Exception as error:
            self._failure = error  # Raised again on the acting thread, which ends the role.

    def _pull_until_stopped(self) -> None:
        seen = 0
        report = WaitReport()
        while not self._stop.wait(self._interval_s):
            try:
                version = self._container.version(_TIMEOUT_S)
            except UNREACHABLE:
                report.say("the variable container: the replay server does not answer")
                continue
            report = WaitReport()
            # 0 where a server came back empty: a pull would block, for ever if that one ends as well.
            if version not in (0, seen):
                self._keep(self._container.pull())
            seen = version

    def _keep(self, version: PolicyVariables) -> None:
        with self._lock:
            self._fresh = version
            self._train_step = version.train_step
            self._pulled_at = time.monotonic()
