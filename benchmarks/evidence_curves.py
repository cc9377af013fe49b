"""The curves of finished runs, as docs/evidence keeps them."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Curve:
    """The evaluations of one run.

    Attributes:
      agent: the algorithm.
      seed: of the run.
      facts: the comments of its file: `command`, `commit`, `machine`, `date` and `best`.
      env_steps: of each evaluation.
      minutes: from the start of the run to the end of each evaluation.
      returns: the AverageReturn of each evaluation.
    """

    agent: str
    seed: int
    facts: dict[str, str]
    env_steps: list[int]
    minutes: list[float]
    returns: list[float]

    def at_env_step(self, env_step: int) -> float:
        """Returns the AverageReturn there, on the line between two evaluations."""
        return float(np.interp(env_step, self.env_steps, self.returns))

    def at_minute(self, minute: float) -> float:
        """Returns the AverageReturn after so many minutes, on the line between two evaluations."""
        return float(np.interp(minute, self.minutes, self.returns))

    def second_half(self) -> list[float]:
        """Returns the AverageReturn of the evaluations in the second half of the env steps."""
        half = self.env_steps[-1] / 2
        return [each for step, each in zip(self.env_steps, self.returns, strict=True) if step > half]

    def falls(self) -> int:
        """Returns how many evaluations of the second half are no better than the first, untrained one."""
        return sum(each <= self.returns[0] for each in self.second_half())


def read(path: Path) -> Curve:
    """Reads a file that `keep` wrote."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line.removeprefix("# ").partition(": ") for line in lines if line.startswith("#")]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    agent, _, seed = path.stem.rpartition("-")
    return Curve(
        agent=agent,
        seed=int(seed),
        facts={name: fact for name, _, fact in comments},
        env_steps=[int(row["env_steps"]) for row in rows],
        minutes=[float(row["minutes"]) for row in rows],
        returns=[float(row["average_return"]) for row in rows],
    )


def read_directory(directory: Path) -> list[Curve]:
    """Reads all curves in a directory, in the order of agents and seeds."""
    curves = [read(path) for path in directory.glob("*.csv")]
    return sorted(curves, key=lambda curve: (curve.agent, curve.seed))
