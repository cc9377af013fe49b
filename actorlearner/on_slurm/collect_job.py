"""A task of the collect actors' job array: one collect actor, which follows the main job."""

import math
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from actorlearner.errors import EXIT_FAILED, EXIT_FINISHED, EXIT_TERMINATED
from actorlearner.on_slurm import signals
from actorlearner.on_slurm.role_step import RoleStep, end_steps
from actorlearner.on_slurm.slurm_commands import UNKNOWN, find, log, requeue, time_limit
from actorlearner.process.role_names import COLLECT_ACTOR
from actorlearner.records.metrics import MetricsWriter
from actorlearner.records.run_directory import RunDirectory

_AGAIN_S = 60.0
_POLL_INTERVAL_S = 5.0
_SAVE_S = 30.0


def collect_job(main_id: str, actors: int, arguments: Sequence[str]) -> int:
    """Runs one collect actor until the main job has ended; returns the exit code.

    Args:
      main_id: the id of the main job.
      actors: the number of collect actors of the run.
      arguments: flags that every role gets.
    """
    index = os.environ["SLURM_ARRAY_TASK_ID"]
    with tempfile.TemporaryDirectory(prefix="actorlearner-") as run_dir:
        if slices := int(os.environ.get("SLURM_RESTART_COUNT", "0")):
            # The actor's seeds depend on the env steps in its last record, see `recorded_env_steps`. The
            # records of earlier time slices are gone: this one gives each time slice other seeds.
            metrics = MetricsWriter(RunDirectory(Path(run_dir)).metrics(f"collect-{index}"))
            metrics.write({"env_steps": slices, "episodes": 0, "faults": 0})
        return _CollectJob(main_id, index, actors, [*arguments, "--run_dir", run_dir]).run()


class _CollectJob:
    """The collect actor of this task, and what is known about the main job."""

    def __init__(self, main_id: str, index: str, actors: int, arguments: Sequence[str]) -> None:
        self._job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{index}"  # SLURM_JOB_ID may mean the whole array.
        self._main_id = main_id
        self._arguments = [*arguments, "--actor_index", index]
        self._actor: RoleStep | None = None
        self._address = self._state = ""
        # Limits the load on Slurm: one request per second from all actors together, at most.
        self._poll_interval_s = max(_POLL_INTERVAL_S, actors)
        self._poll_at = -math.inf

    def run(self) -> int:
        """Blocks until the main job has ended, the actor cannot go on, or a signal arrives."""
        while True:
            if (code := self._follow()) is not None:
                return code
            if (code := self._check()) is not None:
                return code
            if number := signals.wait():
                limit = time_limit(self._job)
                self._end()
                return requeue(self._job, limit) if number == signal.SIGUSR1 else EXIT_TERMINATED

    def _follow(self) -> int | None:
        """Polls the main job if a poll is due; returns an exit code if that job has ended."""
        if time.monotonic() < self._poll_at:
            return None
        self._poll_at = time.monotonic() + self._poll_interval_s
        main = find(self._main_id)
        if main is None:  # Slurm does not answer.
            return None
        if main.ended:
            self._end()
            log(f"the main job {self._main_id} has ended: {main.state}")
            return EXIT_FINISHED if main.state in ("COMPLETED", UNKNOWN) else EXIT_FAILED
        if not main.address and main.state != self._state:
            log(f"waiting for the replay server of the main job {self._main_id}, which is {main.state}")
        self._state = main.state
        if main.address not in ("", self._address):
            self._end()
            self._address = main.address
            log(f"the replay server is at {main.address}")
            self._actor = RoleStep(COLLECT_ACTOR, *self._arguments, "--replay_address", main.address)
        return None

    def _check(self) -> int | None:
        """Starts the actor if it is due; returns an exit code if it cannot go on."""
        if self._actor is None:
            return None
        code = self._actor.check()
        if self._actor.finished:  # A learner that dies now rolls back to its checkpoint and needs actors.
            self._actor.start_again(_AGAIN_S)
        return code

    def _end(self) -> None:
        if self._actor is not None:
            end_steps(self._job, [self._actor], _SAVE_S)
