"""How far a run is, read from its metrics files."""

import time
from typing import Any

from actorlearner.config.schema import Config
from actorlearner.process.cores import collect_actors
from actorlearner.records.metrics import MetricsTail, present_rate, time_left_s
from actorlearner.records.run_directory import RunDirectory


class Progress:
    """The newest figures of all roles.

    Attributes:
      evaluations: all evaluations so far, in order, with those of a run that is resumed.
    """

    def __init__(self, config: Config, directory: RunDirectory) -> None:
        """Nothing is read yet."""
        self.train_steps = config.learn.train_steps
        self.capacity = config.replay.capacity
        self._started = time.monotonic()
        self._started_at = time.time()
        self._learner = MetricsTail(directory.metrics("learner"))
        self._replay = MetricsTail(directory.metrics("replay"))
        self._eval = MetricsTail(directory.metrics("eval"))
        self._collect = [
            MetricsTail(directory.metrics(f"collect-{i}")) for i in range(collect_actors(config.collect))
        ]
        self.evaluations: list[dict[str, Any]] = []
        self._train_step_before = 0
        self._env_steps_before = 0

    def skip_earlier(self) -> None:
        """Takes what is there already for the earlier part of a run that is resumed."""
        self.update()
        for tail in (self._learner, *self._collect):
            tail.first = {}
        self._train_step_before = self.train_step
        self._env_steps_before = self.env_steps

    def update(self) -> list[dict[str, Any]]:
        """Reads what is new; returns the new evaluations."""
        for tail in (self._learner, self._replay, *self._collect):
            tail.read()
        new = self._eval.read()
        self.evaluations += new
        return new

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run was started."""
        return time.monotonic() - self._started

    @property
    def first_env_step_s(self) -> float | None:
        """Seconds from the start to the first env step of any actor; None before."""
        times = [tail.first["time"] for tail in self._collect if tail.first]
        return min(times) - self._started_at if times else None

    @property
    def first_train_step_s(self) -> float | None:
        """Seconds from the start to the end of the learner's first call of its graph; None before."""
        return self._learner.first["time"] - self._started_at if self._learner.first else None

    @property
    def train_step(self) -> int:
        """The newest train step reported."""
        return int(self._learner.newest.get("train_step", 0))

    @property
    def is_resumed(self) -> bool:
        """Whether the run had taken train steps before this part of it."""
        return self._train_step_before > 0

    @property
    def mean_rates(self) -> tuple[float, float]:
        """Train steps and env steps a second since this part of the run was started."""
        return (
            (self.train_step - self._train_step_before) / self.elapsed_s,
            (self.env_steps - self._env_steps_before) / self.elapsed_s,
        )

    @property
    def train_steps_per_s(self) -> float:
        """Over the learner's last report; 0 if there is none, or none of late."""
        return present_rate(self._learner.recent, "train_steps_per_s") or 0.0

    @property
    def time_left_s(self) -> float | None:
        """Seconds until the last train step; None while nothing tells."""
        return time_left_s(self._learner.recent, self.train_steps)

    @property
    def env_steps(self) -> int:
        """Env steps that all actors have taken."""
        return sum(int(tail.newest.get("env_steps", 0)) for tail in self._collect)

    @property
    def env_steps_per_s(self) -> float:
        """Of all actors together, over their last reports; of those that have reported of late."""
        return sum(present_rate(tail.recent, "env_steps_per_s") or 0.0 for tail in self._collect)

    @property
    def episodes(self) -> int:
        """Episodes that all actors have ended."""
        return sum(int(tail.newest.get("episodes", 0)) for tail in self._collect)

    @property
    def faults(self) -> int:
        """How often environments of the actors have failed."""
        return sum(int(tail.newest.get("faults", 0)) for tail in self._collect)

    @property
    def replay_size(self) -> int:
        """Transitions in replay."""
        return int(self._replay.newest.get("size", 0))

    @property
    def collect_return(self) -> float | None:
        """The average return of the actors' newest episodes."""
        returns = [
            tail.newest["average_return"]
            for tail in self._collect
            if tail.newest.get("average_return") is not None
        ]
        return sum(returns) / len(returns) if returns else None
