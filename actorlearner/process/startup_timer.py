"""Measures how long each phase of a role's start takes."""

import os
import time
from pathlib import Path

from actorlearner.records.notify import notify

_requested_at: float | None = None


def set_request_time(monotonic_s: float) -> None:
    """Sets when this process was requested; the fork server may import for seconds before it forks."""
    global _requested_at
    _requested_at = monotonic_s


class StartupTimer:
    """The phases of a role's start, from the start of its process on."""

    def __init__(self) -> None:
        """Ends the first phase, `imports`: the interpreter, the configuration and the libraries."""
        age_s = _process_age_s() if _requested_at is None else time.monotonic() - _requested_at
        self._phases: dict[str, float] = {"imports": age_s}
        self._since = time.monotonic()

    def ended(self, phase: str) -> None:
        """Records the time since the last phase as the duration of `phase`."""
        now = time.monotonic()
        self._phases[phase] = now - self._since
        self._since = now

    def report(self, state: str) -> None:
        """Notifies the parent process of the role's state, with the phases so far."""
        notify(state, str(self))

    def __str__(self) -> str:
        """The phases in order, with their seconds."""
        return ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in self._phases.items())


def _process_age_s() -> float:
    """Returns the seconds since this process started, to a clock tick."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    return max(0.0, uptime_s - started_s)
