"""Prints what finished runs have learned as the table that the README shows, and draws its curves.

    .venv/bin/python -m benchmarks.learning [--plot FILE] runs/sac_pendulum-20260101-120000 ...

The returns are those of the greedy policy, averaged over the configuration's episodes, at every evaluation;
the rate is the median of the learner's reports; the minutes are from the start of the run to its last
evaluation, start-up included.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from actorlearner.config.load import load_config
from actorlearner.config.schema import Config
from actorlearner.metrics import read_records
from actorlearner.run_directory import RunDirectory

_HEADER = ("experiment", "layout", "seed", "train steps: AverageReturn", "train steps/s", "minutes")
_COLOURS = {"packed": "tab:blue", "trajectory": "tab:orange"}
_INCHES = (5.0, 3.4)
"""Of the picture of one experiment."""


@dataclass(frozen=True)
class Run:
    """A finished run, as its directory tells.

    Attributes:
      config: what ran.
      train_steps, returns: of its evaluations, in order.
      rate: median of the learner's reported train steps a second.
      minutes: from the start to the last evaluation.
    """

    config: Config
    train_steps: list[int]
    returns: list[float]
    rate: float
    minutes: float

    @property
    def experiment(self) -> str:
        """The algorithm and the environment."""
        return f"{self.config.agent.name} {self.config.environment.name}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, and draws the curves if a file for them is named; returns the exit code."""
    parser = argparse.ArgumentParser(description="Tabulates what finished runs have learned.")
    parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", type=Path)
    parser.add_argument("--plot", metavar="FILE", type=Path, help="where a picture of the curves goes")
    options = parser.parse_args(arguments)
    runs = [read(path) for path in options.run_dirs]
    for line in table(runs):
        print(line)
    if options.plot is not None:
        plot(runs, options.plot)
    return 0


def read(path: Path) -> Run:
    """Reads a run directory."""
    directory = RunDirectory(path)
    evaluations = read_records(directory.metrics("eval"))
    rates = [record["train_steps_per_s"] for record in read_records(directory.metrics("learner"))]
    created = datetime.fromisoformat(json.loads(directory.manifest.read_text())["created"]).timestamp()
    return Run(
        config=load_config(str(directory.config)),
        train_steps=[evaluation["train_step"] for evaluation in evaluations],
        returns=[evaluation["average_return"] for evaluation in evaluations],
        rate=statistics.median(rates),
        minutes=(evaluations[-1]["time"] - created) / 60,
    )


def table(runs: Sequence[Run]) -> Iterator[str]:
    """Yields the lines of a Markdown table with one row a run, in the order given."""
    yield "| " + " | ".join(_HEADER) + " |"
    yield "|" + " --- |" * len(_HEADER)
    for run in runs:
        yield "| " + " | ".join(_row(run)) + " |"


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


def plot(runs: Sequence[Run], path: Path) -> None:
    """Draws returns against train steps, for each experiment all seeds and the mean of each layout."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    experiments = list(dict.fromkeys(run.experiment for run in runs))
    width, height = _INCHES
    figure, rows = plt.subplots(
        1, len(experiments), figsize=(width * len(experiments), height), squeeze=False
    )
    for axes, experiment in zip(rows[0], experiments, strict=True):
        _draw(axes, [run for run in runs if run.experiment == experiment])
        axes.set(title=experiment, xlabel="train steps", ylabel="AverageReturn of the greedy policy")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def _draw(axes: Any, runs: Sequence[Run]) -> None:
    for layout, colour in _COLOURS.items():
        of_layout = [run for run in runs if run.config.replay.layout == layout]
        for run in of_layout:
            axes.plot(run.train_steps, run.returns, color=colour, alpha=0.35, linewidth=1)
        if of_layout:
            means = [
                statistics.mean(values) for values in zip(*(run.returns for run in of_layout), strict=True)
            ]
            label = f"{layout}, mean of {len(of_layout)} seeds"
            axes.plot(of_layout[0].train_steps, means, color=colour, linewidth=2.5, label=label)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")


if __name__ == "__main__":
    sys.exit(main())
