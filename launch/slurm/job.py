#!/usr/bin/env python3
"""The work of a run's two Slurm jobs, which main.sbatch and collect.sbatch start.

  job.py main RUN_DIR ARGUMENTS...               replay server, learner and eval actor
  job.py collect MAIN_JOB ACTORS ARGUMENTS...    one collect actor

ARGUMENTS are those of every role. Each role is a job step and is started again when it dies. SIGUSR1, which
Slurm sends before the time limit, ends the roles, which save, and requeues the job. SIGTERM, from scancel or
a preemption, only ends them: Slurm decides whether such a job is requeued.

The main job stores the replay server's address in its comment, with the number of its requeues, so that no
actor connects to an address of an earlier time slice. A port computed from the job's id might be in use.
"""

import contextlib
import dataclasses
import datetime
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED, EXIT_TERMINATED, EXIT_USAGE
from actorlearner.local.restarts import Restarts
from actorlearner.network.certificate import CERTIFICATE_VARIABLE, write_certificate
from actorlearner.network.ports import free_port

_SIGNALS = {signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT}
_TICK_S = 1.0
_SLURM_S = 60.0  # For an answer of Slurm.
_PUBLISH_S = 300.0
_AGAIN_S = 60.0
_ASK_S = 5.0
_SAVE_S = 900.0  # Replay may be many gigabytes.
_LEAST_SAVE_S = 20.0
_RESERVE_S = 5.0  # Before the time limit, for requeueing the job.
_ACTOR_S = 30.0
_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
}
_UNKNOWN = "UNKNOWN"


def say(line: str) -> None:
    """Prints a line to the job's log."""
    print(f"{time.strftime('%H:%M:%S')} slurm: {line}", file=sys.stderr, flush=True)


def wait(timeout_s: float = _TICK_S) -> int:
    """Blocks until a signal arrives, at most `timeout_s`; returns its number if it ends the job, else 0."""
    number = signal.sigtimedwait(_SIGNALS, timeout_s)
    return 0 if number is None or number.si_signo == signal.SIGCHLD else number.si_signo


# Slurm.


def slurm(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs one of Slurm's commands; a failed result if it does not answer."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_SLURM_S, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {_SLURM_S:.0f} s")


@dataclasses.dataclass(frozen=True)
class Job:
    """The state of a job, as Slurm reports it.

    Attributes:
      state: one of Slurm's words, such as RUNNING; UNKNOWN for a job that ended long ago.
      requeues: how often it was requeued.
      address: HOST:PORT of the replay server in this time slice; empty if it is not known yet.
      end: the time limit in Unix seconds; infinity without one.
    """

    state: str
    requeues: int = 0
    address: str = ""
    end: float = math.inf

    @property
    def ended(self) -> bool:
        """Returns whether the job has ended and will not be requeued."""
        return self.state in (*_ENDED, _UNKNOWN)


def find(job: str) -> Job | None:
    """Asks Slurm about a job; returns None if it does not answer."""
    shown = slurm("scontrol", "--oneliner", "show", "job", job)
    if shown.returncode:
        return Job(_UNKNOWN) if "Invalid job id" in shown.stderr else None
    values = dict(re.findall(r"(?:^| )(JobState|Restarts|EndTime|Comment)=(\S*)", shown.stdout))
    requeues = int(values["Restarts"])
    slice_of, _, address = values.get("Comment", "").removeprefix("actorlearner:").partition(":")
    end = math.inf
    with contextlib.suppress(ValueError):
        end = datetime.datetime.fromisoformat(values["EndTime"]).timestamp()
    return Job(values["JobState"], requeues, address if slice_of == str(requeues) else "", end)


def publish(job: str, address: str) -> bool:
    """Stores the replay server's address in this job's comment; returns whether Slurm has it."""
    comment = f"actorlearner:{os.environ.get('SLURM_RESTART_COUNT', '0')}:{address}"
    deadline = time.monotonic() + _PUBLISH_S
    while (done := slurm("scontrol", "update", f"JobId={job}", f"Comment={comment}")).returncode:
        if time.monotonic() > deadline or wait(10.0):
            say(f"the address cannot be stored in the comment of job {job}: {done.stderr.strip()}")
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
    say(f"job {job} cannot be requeued ({why}); submit the run again with the same --run_dir to continue it")
    return EXIT_FAILED


# Roles.


class Role:
    """A role as a job step, which is started again when it dies.

    Attributes:
      name: of the role and its step.
      finished: whether it has ended by itself, its work done.
      starts: how often it was started.
    """

    def __init__(self, role: str, *arguments: str) -> None:
        """The first `check` starts it."""
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

    def again(self, delay_s: float) -> None:
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
            say(f"{self.name} died, exit code {code}, too often: {self._restarts}")
            return False
        self._due = now + delay_s
        say(f"{self.name} died, exit code {code}; starting it again in {delay_s:.0f} s ({self._restarts})")
        return True

    def _start(self) -> None:
        self.starts += 1
        # In a group of its own: srun must not get the job's signals, because it kills its step at SIGTERM.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=_unblock_signals
        )


def _unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def end(job: str, roles: Sequence[Role], within_s: float) -> None:
    """Blocks until the roles have saved and ended; kills their steps after `within_s`."""
    deadline = time.monotonic() + within_s
    asked: set[tuple[str, str]] = set()
    while running := [role.name for role in roles if role.running]:
        number = "KILL" if time.monotonic() > deadline else "TERM"
        if any((name, number) not in asked for name in running):
            for step, name in _steps(job):
                if name in running and (name, number) not in asked:
                    asked.add((name, number))
                    slurm("scancel", f"--signal={number}", step)
        if time.monotonic() > deadline + _SLURM_S:
            say(f"{', '.join(running)}: cannot be killed")
            return
        wait()


def _steps(job: str) -> list[tuple[str, str]]:
    """Returns the id and the name of each running step of a job; scancel needs the id."""
    shown = slurm("squeue", "--noheader", "--steps", f"--jobs={job}", "--format=%i %j")
    lines = [line.split() for line in shown.stdout.splitlines()]
    return [(line[0], line[1]) for line in lines if len(line) == 2]


# The jobs.


def main_job(run_dir: str, arguments: Sequence[str]) -> int:
    """Runs replay server, learner and eval actor until training has finished; returns the exit code.

    Each has a directory of its own in `run_dir`.
    """
    job = os.environ["SLURM_JOB_ID"]
    began = time.time()
    port = free_port()
    if not publish(job, f"{os.environ['SLURMD_NODENAME']}:{port}"):
        return EXIT_FAILED
    to_server = ("--replay_address", f"localhost:{port}")
    options = {"replay-server": ("--port", str(port)), "learner": to_server, "eval-actor": to_server}
    server, learner, evaluator = roles = [
        Role(name, *arguments, "--run_dir", f"{run_dir}/{name}", *own) for name, own in options.items()
    ]
    servers = 1
    while not (learner.finished and evaluator.finished):
        for role in roles:
            if (code := role.check()) is not None:
                _end_all(job, roles, _SAVE_S)
                return code
        if server.starts > servers and learner.finished:
            learner.again(0.0)  # The new server needs its policies.
        servers = max(1, server.starts)
        number = wait()
        if number == signal.SIGUSR1:
            say("the time limit is near: saving, then requeueing")
            limit = _limit(job)
            _end_all(job, roles, max(_LEAST_SAVE_S, limit - time.time() - _RESERVE_S))
            if not _served(run_dir, began):
                say("this time slice was too short for the replay server to start; allowed: a longer --time")
                return EXIT_FAILED
            return requeue(job, limit)
        if number:
            _end_all(job, roles, _SAVE_S)
            return EXIT_TERMINATED
    say("training has finished")
    end(job, [server], _SAVE_S)
    return EXIT_FINISHED


def _end_all(job: str, roles: Sequence[Role], within_s: float) -> None:
    """Ends the replay server last, so that the learner can save while data still flows to it."""
    server, *others = roles
    deadline = time.monotonic() + within_s
    end(job, others, within_s / 2)
    end(job, [server], deadline - time.monotonic())


def _limit(job: str) -> float:
    """Returns the time limit of a job in Unix seconds; now if Slurm does not answer."""
    found = find(job)
    return found.end if found else time.time()


def _served(run_dir: str, began: float) -> bool:
    """Returns whether the replay server has written metrics since `began`, in Unix seconds."""
    metrics = Path(run_dir, "replay-server", "metrics", "replay.jsonl")
    return metrics.exists() and metrics.stat().st_mtime >= began


def collect_job(main_id: str, actors: int, arguments: Sequence[str]) -> int:
    """Runs one collect actor, at the address of the main job, until that has ended; returns the exit code.

    All actors together ask Slurm once a second, or each every five seconds if they are few.
    """
    index = os.environ["SLURM_ARRAY_TASK_ID"]
    job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{index}"  # SLURM_JOB_ID may mean the whole array.
    actor: Role | None = None
    address = state = ""
    ask_at = -math.inf
    with tempfile.TemporaryDirectory(prefix="actorlearner-") as run_dir:
        own = ("--actor_index", index, "--run_dir", run_dir)
        while True:
            running = [actor] if actor else []
            if time.monotonic() >= ask_at:
                ask_at = time.monotonic() + max(_ASK_S, actors)
                found = find(main_id)
                if found and found.ended:
                    end(job, running, _ACTOR_S)
                    say(f"the main job {main_id} has ended: {found.state}")
                    return EXIT_FINISHED if found.state in ("COMPLETED", _UNKNOWN) else EXIT_FAILED
                if found and not found.address and found.state != state:
                    say(f"waiting for the replay server of the main job {main_id}, which is {found.state}")
                state = found.state if found else state
                if found and found.address not in ("", address):
                    end(job, running, _ACTOR_S)
                    address = found.address
                    say(f"the replay server is at {address}")
                    actor = Role("collect-actor", *arguments, "--replay_address", address, *own)
            if actor:
                if (code := actor.check()) is not None:
                    return code
                if actor.finished:  # A learner that dies now goes back to its checkpoint, and needs actors.
                    actor.again(_AGAIN_S)
            if number := wait():
                limit = _limit(job)
                end(job, [actor] if actor else [], _ACTOR_S)
                return requeue(job, limit) if number == signal.SIGUSR1 else EXIT_TERMINATED


def main(arguments: Sequence[str]) -> int:
    """Does the work of one job."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    # Not left in the environment, which all processes of the roles would inherit.
    certificate = os.environ.pop(CERTIFICATE_VARIABLE, "")
    if not certificate:
        say(
            f"{CERTIFICATE_VARIABLE} is not set; allowed: jobs of submit.py, without --export=NONE for sbatch"
        )
        return EXIT_USAGE
    which, first, *rest = arguments
    with tempfile.TemporaryDirectory(
        prefix="actorlearner-"
    ) as folder:  # Of this node, and for this user only.
        file = Path(folder, "run.pem")
        write_certificate(file, certificate.encode())
        tls = ("--tls", str(file))
        if which == "main":
            return main_job(first, [*rest, *tls])
        actors, *rest = rest
        return collect_job(first, int(actors), [*rest, *tls])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
