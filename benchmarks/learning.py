"""Prints what finished runs have learned as the table that the README shows.

    .venv/bin/python -m benchmarks.learning runs/sac_pendulum-20260101-120000 ...

The returns are those of the greedy policy, averaged over the configuration's episodes, at every evaluation;
the rate is the median of the learner's reports; the minutes are from the start of the run to its last
evaluation, start-up included.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from actorlearner.agents.configuration import load_config
from actorlearner.config.schema import Config
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from benchmarks import markdown

_HEADER = ("experiment", "layout", "seed", "train steps: AverageReturn", "train steps/s", "minutes")


@dataclass(frozen=True)
class Run:
    """A finished run, as its directory tells.

    Attributes:
      config: what ran.
      train_steps, returns: of its evaluations, in order.
      collected: mean return of the collect actors' episodes, see `_collected`.
      rate: median of the learner's reported train steps a second.
      minutes: from the start to the last evaluation.
    """

    config: Config
    train_steps: list[int]
    returns: list[float]
    collected: float
    rate: float
    minutes: float

    @property
    def experiment(self) -> str:
        """The algorithm and the environment."""
        return f"{self.config.agent.name} {self.config.environment.name}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description="Tabulates what finished runs have learned.")
    parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    runs = [read(path) for path in options.run_dirs]
    for line in table(runs):
        print(line)
    return 0


def read(path: Path) -> Run:
    """Reads a run directory."""
    directory = RunDirectory(path)
    evaluations = read_records(directory.metrics("eval"))
    if not evaluations:
        raise SystemExit(f"{path}: no evaluation there; a run of the learner and the eval actor is needed")
    rates = [record["train_steps_per_s"] for record in read_records(directory.metrics("learner"))]
    created = datetime.fromisoformat(json.loads(directory.manifest.read_text())["created"]).timestamp()
    return Run(
        config=load_config(str(directory.config)),
        train_steps=[evaluation["train_step"] for evaluation in evaluations],
        returns=[evaluation["average_return"] for evaluation in evaluations],
        collected=_collected(directory),
        rate=statistics.median(rates),
        minutes=(evaluations[-1]["time"] - created) / 60,
    )


def _collected(directory: RunDirectory) -> float:
    """Returns of the newest episodes, in the mean over the env steps of each actor and over actors.

    It takes every episode of the training into account, those before the first train step, too.
    """
    means = []
    for path in sorted(directory.metrics("collect-0").parent.glob("collect-*.jsonl")):
        records = [record for record in read_records(path) if record["average_return"] is not None]
        returns = np.array([record["average_return"] for record in records])
        env_steps = np.array([record["env_steps"] for record in records])
        if len(records) > 1:
            means.append(np.trapz(returns, env_steps) / (env_steps[-1] - env_steps[0]))
    return float(np.mean(means)) if means else float("nan")


def table(runs: Sequence[Run]) -> list[str]:
    """The lines of a Markdown table with one row a run, in the order given."""
    return markdown.table(_HEADER, map(_row, runs))


def _row(run: Run) -> tuple[str, ...]:
    curve = ", ".join(
        f"{step:,}: {value:.2f}" for step, value in zip(run.train_steps, run.returns, strict=True)
    )
    return (
        run.experiment,
        run.config.replay.layout,
        str(run.config.seed),
        curve,
        f"{run.rate:.0f}",
        f"{run.minutes:.1f}",
    )


if __name__ == "__main__":
    sys.exit(main())
