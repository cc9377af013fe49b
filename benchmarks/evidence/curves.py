"""The curves of finished runs: writes them into docs/evidence, and reads them from there."""

import csv
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from actorlearner.acting.best_record import read_best
from actorlearner.agents.configuration import load_config
from actorlearner.records.metrics import read_records, without_rolled_back
from actorlearner.records.run_directory import RunDirectory

_COLUMNS = ("train_step", "env_steps", "minutes", "average_return", "deviation", "episodes")
_FLAGS_OF_PLACE = ("--run_dir", "--metrics_port")


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


def keep(folder: Path, run_dir: Path, machine: str, commit: str) -> Path:
    """Writes the curve of a run to FOLDER/AGENT-SEED.csv; returns the file.

    Raises:
      SystemExit: the run has no evaluation.
    """
    directory = RunDirectory(run_dir)
    config = load_config(str(directory.config))
    evaluations = without_rolled_back(read_records(directory.metrics("eval")))
    if not evaluations:
        raise SystemExit(f"{run_dir}: no evaluation there")
    manifest = json.loads(directory.manifest.read_text())
    created = datetime.fromisoformat(manifest["created"])
    best = read_best(directory.best_policy)
    facts = {
        "command": f"actorlearner {shlex.join(_without_place(manifest['command'][1:]))}",
        "commit": commit,
        "machine": machine,
        "date": f"{created:%Y-%m-%d}",
        "best": "-" if best is None else best.describe(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{config.agent.name}-{config.seed}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {name}: {fact}\n" for name, fact in facts.items())
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for record in evaluations:
            minutes = (record["time"] - created.timestamp()) / 60
            returns = record["returns"]
            row = record["train_step"], record["env_steps"], f"{minutes:.2f}"
            writer.writerow([*row, f"{np.mean(returns):.6g}", f"{np.std(returns):.4g}", len(returns)])
    return path


def _without_place(command: Sequence[str]) -> list[str]:
    """Returns the arguments without the flags that only name a directory or a port."""
    kept = []
    arguments = iter(command)
    for argument in arguments:
        if argument in _FLAGS_OF_PLACE:
            next(arguments)
        else:
            kept.append(argument)
    return kept


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
