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
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from actorlearner.config.load import load_config
from actorlearner.run_directory import RunDirectory

_HEADER = ("experiment", "seed", "train steps: AverageReturn", "train steps/s", "minutes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description="Tabulates what finished runs have learned.")
    parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", type=Path)
    for line in table(parser.parse_args(arguments).run_dirs):
        print(line)
    return 0


def table(run_dirs: Sequence[Path]) -> Iterator[str]:
    """Yields the lines of a Markdown table with one row a run directory, in the order given."""
    yield "| " + " | ".join(_HEADER) + " |"
    yield "|" + " --- |" * len(_HEADER)
    for path in run_dirs:
        yield "| " + " | ".join(_row(RunDirectory(path))) + " |"


def _row(directory: RunDirectory) -> tuple[str, ...]:
    config = load_config(str(directory.config))
    evaluations = _records(directory.metrics("eval"))
    rates = [record["train_steps_per_s"] for record in _records(directory.metrics("learner"))]
    created = datetime.fromisoformat(json.loads(directory.manifest.read_text())["created"]).timestamp()
    curve = ", ".join(
        f"{evaluation['train_step']:,}: {evaluation['average_return']:.2f}" for evaluation in evaluations
    )
    return (
        f"{config.agent.name} {config.environment.name}",
        str(config.seed),
        curve,
        f"{statistics.median(rates):.0f}",
        f"{(evaluations[-1]['time'] - created) / 60:.1f}",
    )


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
