"""Jobs of a real Slurm, as a user of a cluster has them."""

import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import REPOSITORY, wait_for

SUBMIT = REPOSITORY / "launch" / "slurm" / "submit.py"
_COMMAND_S = 120.0
_ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"}


def run(*command: str) -> str:
    """Runs a command to its end; returns what it printed, and nothing if it failed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    return done.stdout if done.returncode == 0 else ""


def missing() -> str:
    """The missing requirements for jobs on this machine; empty if there are none."""
    if not shutil.which("sbatch"):
        return "no sbatch"
    return "" if "up" in run("sinfo", "--noheader", "--format=%a").split() else "no partition is up"


class Submitted:
    """The two jobs of a run, which one command submitted.

    Attributes:
      main: the id of the main job.
      collect: the id of the job array.
    """

    def __init__(self, directory: Path, output: str) -> None:
        self._directory = directory
        self.main, self.collect = re.findall(r"^(?:main job|collect actors): +(\d+) ", output, re.MULTILINE)

    def show(self, job: str, key: str) -> str:
        """The value of a key of `scontrol show job`; of an array, of its first task."""
        found = re.search(rf" {key}=(\S*)", run("scontrol", "--oneliner", "show", "job", job))
        return found[1] if found else ""

    @property
    def state(self) -> str:
        return self.show(self.main, "JobState")

    def steps(self) -> dict[str, str]:
        """The id of each running step of the main job, by its name."""
        lines = run("squeue", "--noheader", "--steps", f"--jobs={self.main}", "--format=%j %i").splitlines()
        return dict(line.split() for line in lines)

    def log(self, task: int | None = None) -> str:
        """The log of the main job, or of a task of the array."""
        name = f"slurm-{self.main}.out" if task is None else f"slurm-{self.collect}_{task}.out"
        path = self._directory / name
        return path.read_text() if path.exists() else ""

    def end_time_slice(self) -> None:
        """Lets the time limit of the main job come, and waits until the job is in the queue again.

        Sets the limit so late that Slurm has time for the warning: it looks every 30 seconds, and sends the
        signal if the limit comes within those and the 5 seconds of `--signal`. A limit from the start would
        leave a slow machine nothing but the start-up.

        Slurm starts a requeued job after two minutes; this requests ten seconds. At once does not work: a job
        that starts in the second in which it was requeued fails with "Job credential revoked".
        """
        restarts = self.show(self.main, "Restarts")
        hours, minutes, seconds = map(int, self.show(self.main, "RunTime").split(":"))
        limit_min = hours * 60 + minutes + (seconds + 40) // 60 + 1
        run("scontrol", "update", f"JobId={self.main}", f"TimeLimit={limit_min}")

        def requeued() -> bool:
            assert self.state not in _ENDED, self.log()
            # Empty if Slurm does not answer.
            again = self.show(self.main, "Restarts") not in (restarts, "")
            return again and self.show(self.main, "Reason") == "BeginTime"

        wait_for(requeued, "the end of the time slice", 300, interval_s=1.0)
        run("scontrol", "update", f"JobId={self.main}", "StartTime=now+10", "TimeLimit=20")

    def wait_for_end(self, job: str, timeout_s: float) -> str:
        """Waits until a job or an array has ended; returns the state of the job."""

        def ended() -> bool:
            states = run("squeue", "--noheader", f"--jobs={job}", "--states=all", "--format=%T").split()
            return _ENDED.issuperset(states)

        wait_for(ended, f"the end of job {job}", timeout_s, interval_s=1.0)
        return self.show(job, "JobState")


def submit(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Calls the submit command in a directory."""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, str(SUBMIT), *arguments]
    return subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_COMMAND_S,
        check=False,
    )


@contextmanager
def submitted(directory: Path, *arguments: str) -> Iterator[Submitted]:
    """Submits a run, of which no job is left afterwards."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    options = (f"--job-name={name}", "--time=20", "--signal=B:USR1@5", "--cpus-per-task=1")
    done = submit(directory, *arguments, "--", *options)
    try:
        assert done.returncode == 0, done.stderr
        yield Submitted(directory, done.stdout)
    finally:
        run("scancel", f"--name={name}")
        wait_for(
            lambda: not run("squeue", "--noheader", f"--name={name}"), "the jobs to be gone", interval_s=0.5
        )
