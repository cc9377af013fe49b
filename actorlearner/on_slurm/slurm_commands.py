"""Calls Slurm's commands: reads a job's state, stores the replay server's address, requeues a job.

The main job stores the replay server's address in its comment, with the number of its requeues, so that no
actor connects to an address of an earlier time slice. A port computed from the job's id might be in use.
"""

import contextlib
import dataclasses
import datetime
import math
import os
import re
import subprocess
import sys
import time

from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED, EXIT_TERMINATED
from actorlearner.on_slurm import signals

ANSWER_S = 60.0
"""Seconds that Slurm has to answer."""

UNKNOWN = "UNKNOWN"
"""The state of a job that ended so long ago that Slurm has forgotten it."""

_PUBLISH_S = 300.0
_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
}


def log(line: str) -> None:
    """Prints a line to the job's log."""
    print(f"{time.strftime('%H:%M:%S')} slurm: {line}", file=sys.stderr, flush=True)


def slurm(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs one of Slurm's commands; a failed result if it does not answer."""
    environment = os.environ | {"SLURM_TIME_FORMAT": "standard"}  # `find` reads no other format.
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=ANSWER_S, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {ANSWER_S:.0f} s")


@dataclasses.dataclass(frozen=True)
class Job:
    """The state of a job, as Slurm reports it.

    Attributes:
      state: one of Slurm's words, such as RUNNING; UNKNOWN for a job that ended long ago.
      address: HOST:PORT of the replay server in this time slice; empty if it is not known yet.
      time_limit: in Unix seconds; infinity without one.
    """

    state: str
    address: str = ""
    time_limit: float = math.inf

    @property
    def ended(self) -> bool:
        """Returns whether the job has ended and will not be requeued."""
        return self.state in (*_ENDED, UNKNOWN)


def find(job: str) -> Job | None:
    """Asks Slurm about a job; returns None if it does not answer."""
    shown = slurm("scontrol", "--oneliner", "show", "job", job)
    if shown.returncode:
        return Job(UNKNOWN) if "Invalid job id" in shown.stderr else None
    values = dict(re.findall(r"(?:^| )(JobState|Restarts|EndTime|Comment)=(\S*)", shown.stdout))
    slice_of, _, address = values.get("Comment", "").removeprefix("actorlearner:").partition(":")
    limit = math.inf
    with contextlib.suppress(ValueError):
        limit = datetime.datetime.fromisoformat(values["EndTime"]).timestamp()
    return Job(values["JobState"], address if slice_of == values["Restarts"] else "", limit)


def time_limit(job: str) -> float:
    """Returns the time limit of a job in Unix seconds; now if Slurm does not answer."""
    found = find(job)
    return found.time_limit if found else time.time()


def running_steps(job: str) -> list[tuple[str, str]]:
    """Returns the id and the name of each running step of a job; scancel needs the id."""
    shown = slurm("squeue", "--noheader", "--steps", f"--jobs={job}", "--format=%i %j")
    lines = [line.split() for line in shown.stdout.splitlines()]
    return [(line[0], line[1]) for line in lines if len(line) == 2]


def publish(job: str, address: str) -> bool:
    """Stores the replay server's address in this job's comment; returns whether Slurm has it."""
    comment = f"actorlearner:{os.environ.get('SLURM_RESTART_COUNT', '0')}:{address}"
    deadline = time.monotonic() + _PUBLISH_S
    while (done := slurm("scontrol", "update", f"JobId={job}", f"Comment={comment}")).returncode:
        if time.monotonic() > deadline or signals.wait(10.0):
            log(f"the address cannot be stored in the comment of job {job}: {done.stderr.strip()}")
            return False
    return True


def requeue(job: str, limit: float) -> int:
    """Requeues this job, which ends it, unless somebody cancelled it meanwhile; returns the exit code.

    Slurm requeues a job also in the seconds after its time limit.

    Args:
      job: the id of this job.
      limit: the job's time limit in Unix seconds.
    """
    if time.time() < limit and (found := find(job)) and found.state != "RUNNING":
        return EXIT_TERMINATED
    done = slurm("scontrol", "requeue", job)
    if done.returncode == 0:
        return EXIT_FINISHED
    why = " ".join(done.stderr.split())
    log(f"job {job} cannot be requeued ({why}); submit the run again with the same --run_dir to continue it")
    return EXIT_FAILED
