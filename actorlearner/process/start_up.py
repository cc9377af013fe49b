"""Where the seconds go until a role works."""

import os
import time
from pathlib import Path

from actorlearner.records.notify import notify

_asked_for: float | None = None


def asked_for_at(monotonic_s: float) -> None:
    """Says when somebody asked for this process, which was forked only after the imports."""
    global _asked_for
    _asked_for = monotonic_s


class StartUp:
    """A role's start in phases, from the start of its process on."""

    def __init__(self) -> None:
        """Ends the first phase, `imports`: the interpreter, the configuration and the libraries."""
        age_s = _process_age_s() if _asked_for is None else time.monotonic() - _asked_for
        self._phases: dict[str, float] = {"imports": age_s}
        self._since = time.monotonic()

    def ended(self, phase: str) -> None:
        """Says that what came since the last phase was `phase`."""
        now = time.monotonic()
        self._phases[phase] = now - self._since
        self._since = now

    def tell(self, state: str) -> None:
        """Tells the process that started this role its `state` (see `notify`), with the phases so far."""
        notify(state, str(self))

    def __str__(self) -> str:
        """The phases in order, with their seconds."""
        return ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in self._phases.items())


def _process_age_s() -> float:
    """Seconds since this process was started, to a clock tick."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    return max(0.0, uptime_s - started_s)
