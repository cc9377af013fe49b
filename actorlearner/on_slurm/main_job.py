"""The main job: replay server, learner and eval actor, until training has finished."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED, EXIT_TERMINATED
from actorlearner.network.ports import free_port
from actorlearner.on_slurm import signals
from actorlearner.on_slurm.role_step import RoleStep, end_steps
from actorlearner.on_slurm.slurm_commands import log, publish, requeue, time_limit
from actorlearner.process.role_names import EVAL_ACTOR, LEARNER, REPLAY_SERVER

_SAVE_S = 900.0  # Replay may be many gigabytes.
_LEAST_SAVE_S = 20.0
_RESERVE_S = 5.0  # Before the time limit, for requeueing the job.


def main_job(run_dir: str, arguments: Sequence[str]) -> int:
    """Runs replay server, learner and eval actor until training has finished; returns the exit code.

    Each role has a run directory of its own in `run_dir`.
    """
    job = os.environ["SLURM_JOB_ID"]
    began = time.time()
    port = free_port()
    if not publish(job, f"{os.environ['SLURMD_NODENAME']}:{port}"):
        return EXIT_FAILED
    to_server = ("--replay_address", f"localhost:{port}")
    options = {REPLAY_SERVER: ("--port", str(port)), LEARNER: to_server, EVAL_ACTOR: to_server}
    server, learner, evaluator = roles = [
        RoleStep(name, *arguments, "--run_dir", f"{run_dir}/{name}", *own) for name, own in options.items()
    ]
    servers = 1
    while not (learner.finished and evaluator.finished):
        for role in roles:
            if (code := role.check()) is not None:
                _end_all(job, roles, _SAVE_S)
                return code
        if server.starts > servers and learner.finished:
            learner.start_again(0.0)  # The new server needs its policies.
        servers = server.starts
        number = signals.wait()
        if number == signal.SIGUSR1:
            return _save_and_requeue(job, roles, run_dir, began)
        if number:
            _end_all(job, roles, _SAVE_S)
            return EXIT_TERMINATED
    log("training has finished")
    end_steps(job, [server], _SAVE_S)
    return EXIT_FINISHED


def _save_and_requeue(job: str, roles: Sequence[RoleStep], run_dir: str, began: float) -> int:
    log("the time limit is near: saving, then requeueing")
    limit = time_limit(job)
    _end_all(job, roles, max(_LEAST_SAVE_S, limit - time.time() - _RESERVE_S))
    if not _served(run_dir, began):
        log("this time slice was too short for the replay server to start; allowed: a longer --time")
        return EXIT_FAILED
    return requeue(job, limit)


def _end_all(job: str, roles: Sequence[RoleStep], within_s: float) -> None:
    """Ends the replay server last, so that the learner can save while data still flows to it."""
    server, *others = roles
    deadline = time.monotonic() + within_s
    end_steps(job, others, within_s / 2)
    end_steps(job, [server], deadline - time.monotonic())


def _served(run_dir: str, began: float) -> bool:
    """Returns whether the replay server has written metrics since `began`, in Unix seconds."""
    metrics = Path(run_dir, REPLAY_SERVER, "metrics", "replay.jsonl")
    return metrics.exists() and metrics.stat().st_mtime >= began
