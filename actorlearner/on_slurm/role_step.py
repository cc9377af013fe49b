"""A role as a step of a Slurm job, which is started again when it dies."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED, EXIT_USAGE
from actorlearner.local.restarts import Restarts
from actorlearner.on_slurm import signals
from actorlearner.on_slurm.slurm_commands import ANSWER_S, log, running_steps, slurm


class RoleStep:
    """A role as a job step, which is started again when it dies.

    Attributes:
      name: of the role and its step.
      finished: whether the role has completed its work and exited.
      starts: how often it was started.
    """

    def __init__(self, role: str, *arguments: str) -> None:
        """Starts nothing: the first `check` starts the role."""
        self.name = role
        self.finished = False
        self.starts = 0
        # srun does not pass --cpus-per-task of the job on. --overlap: roles share the job's cores.
        step = ["srun", "--overlap", "--ntasks=1", f"--job-name={role}"]
        if cpus := os.environ.get("SLURM_CPUS_PER_TASK"):
            step.append(f"--cpus-per-task={cpus}")
        self._command = [*step, sys.executable, "-m", "actorlearner", role, *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._due = -math.inf
        self._restarts = Restarts()

    @property
    def running(self) -> bool:
        """Returns whether its job step is running."""
        return self._process is not None and self._process.poll() is None

    def start_again(self, delay_s: float) -> None:
        """Starts a finished role again, `delay_s` from now."""
        self.finished = False
        self._due = time.monotonic() + delay_s

    def check(self) -> int | None:
        """Starts the role if it is due; returns the exit code of the job if the role cannot go on."""
        now = time.monotonic()
        if self._process is not None and (code := self._process.poll()) is not None:
            self._process = None
            if code == EXIT_USAGE:
                return EXIT_USAGE
            self.finished = code == EXIT_FINISHED
            if not self.finished and not self._may_start_again(code, now):
                return EXIT_FAILED
        if self._process is None and not self.finished and now >= self._due:
            self._start()
        return None

    def _may_start_again(self, code: int, now: float) -> bool:
        delay_s = self._restarts.delay_s(now)
        if delay_s is None:
            log(f"{self.name} died, exit code {code}, too often: {self._restarts}")
            return False
        self._due = now + delay_s
        log(f"{self.name} died, exit code {code}; starting it again in {delay_s:.0f} s ({self._restarts})")
        return True

    def _start(self) -> None:
        self.starts += 1
        # In a group of its own: srun must not get the job's signals, because it kills its step at SIGTERM.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=signals.unblock
        )


def end_steps(job: str, roles: Sequence[RoleStep], within_s: float) -> None:
    """Blocks until the roles have saved and ended; kills their steps after `within_s`."""
    deadline = time.monotonic() + within_s
    signalled: set[tuple[str, str]] = set()
    while running := [role.name for role in roles if role.running]:
        number = "KILL" if time.monotonic() > deadline else "TERM"
        if any((name, number) not in signalled for name in running):
            for step, name in running_steps(job):
                if name in running and (name, number) not in signalled:
                    signalled.add((name, number))
                    slurm("scancel", f"--signal={number}", step)
        if time.monotonic() > deadline + ANSWER_S:
            log(f"{', '.join(running)}: cannot be killed")
            return
        signals.wait()
