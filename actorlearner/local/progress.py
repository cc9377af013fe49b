"""The progress of a local run, since it was started or resumed."""

import time
from pathlib import Path
from typing import Any

from actorlearner.config.schema import Config
from actorlearner.inspect.status.run_status import RunStatus, read_status
from actorlearner.records.lines import Tail, read_objects
from actorlearner.records.metrics import newest_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.run_files import RunFiles


class Progress:
    """The newest status of a run, and its totals.

    Attributes:
      config: the experiment.
      directory: the run directory.
      status: as of the last `update`.
      evaluations: all evaluations so far, oldest first, including those before a resume.
    """

    def __init__(self, config: Config, directory: RunDirectory) -> None:
        """Starts the clock; mean rates leave out the steps recorded before. `directory` must be prepared."""
        self.config = config
        self.directory = directory
        self._files = RunFiles([directory])
        self._started = time.monotonic()
        self._started_at = round(time.time(), 3)  # As the records' times are.
        self._eval = directory.metrics("eval")
        self._eval_lines = Tail(self._eval, from_start=True)
        self.evaluations: list[dict[str, Any]] = []
        self.new_evaluations()
        self._first_env_step_s: float | None = None
        self._first_train_step_s: float | None = None
        self.update()
        self._train_step_before, self._env_steps_before = self.train_step, self.env_steps

    def update(self) -> None:
        """Reads the status; costs milliseconds."""
        self.status: RunStatus = read_status(self._files, self.config)
        # Kept from the first update that finds them: later, `newest_records` may not reach back so far.
        if self._first_env_step_s is None:
            self._first_env_step_s = self._first_time(*self._files.collect_metrics())
        if self._first_train_step_s is None:
            self._first_train_step_s = self._first_time(self._files.metrics("learner"))

    def new_evaluations(self) -> list[dict[str, Any]]:
        """Returns the evaluations since the last call; costs little."""
        new = read_objects(self._eval, self._eval_lines.lines())
        self.evaluations += new
        return new

    @property
    def elapsed_s(self) -> float:
        """Seconds since this part of the run was started."""
        return time.monotonic() - self._started

    @property
    def train_step(self) -> int:
        """The newest recorded train step."""
        return self.status.train_step or 0

    @property
    def env_steps(self) -> int:
        """The recorded env steps of all actors."""
        return self.status.env_steps or 0

    @property
    def episodes(self) -> int:
        """The recorded episodes of all actors."""
        return sum(actor.get("episodes", 0) for actor in self.status.actors)

    @property
    def first_steps_s(self) -> tuple[float, float] | None:
        """Seconds from the start to the first env step, and to the end of the learner's first call."""
        env_step_s, train_step_s = self._first_env_step_s, self._first_train_step_s
        return None if env_step_s is None or train_step_s is None else (env_step_s, train_step_s)

    @property
    def is_resumed(self) -> bool:
        """Whether train steps were taken before this part of the run."""
        return self._train_step_before > 0

    @property
    def mean_rates(self) -> tuple[float, float]:
        """Train steps and env steps per second since this part of the run was started."""
        return (
            (self.train_step - self._train_step_before) / self.elapsed_s,
            (self.env_steps - self._env_steps_before) / self.elapsed_s,
        )

    def _first_time(self, *paths: Path) -> float | None:
        """Returns the seconds from the start to the first record after it; None if there is none yet."""
        times = [record["time"] - self._started_at for path in paths for record in newest_records(path)]
        return min((time for time in times if time >= 0), default=None)
