"""Keeps the curves of finished runs in docs/evidence, and draws the docs' tables and pictures from them.

    .venv/bin/python -m benchmarks.evidence keep minitaur runs/minitaur-* --machine "two idle cores of ..."
    .venv/bin/python -m benchmarks.evidence draw

`keep` writes docs/evidence/EXPERIMENT/AGENT-SEED.csv for each run: a line for each evaluation of the greedy
policy, below comments with the command, the commit and the machine. `draw` makes docs/pictures/EXPERIMENT.png
and rewrites what stands between `<!-- evidence: EXPERIMENT -->` and `<!-- /evidence -->` in the docs' pages.
"""

import argparse
import csv
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from actorlearner.acting.best_record import read_best
from actorlearner.agents.configuration import load_config
from actorlearner.inspect.plot.figure import COLOURS
from actorlearner.records.formatting import decimals
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from benchmarks import markdown

DOCS = Path(__file__).resolve().parent.parent / "docs"
EVIDENCE = DOCS / "evidence"
PICTURES = DOCS / "pictures"

_COLUMNS = ("train_step", "env_steps", "minutes", "average_return", "deviation", "episodes")
_BLOCK = re.compile(r"(<!-- evidence: ([\w-]+) -->\n).*?(<!-- /evidence -->)", re.DOTALL)
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Keeps runs or draws; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.evidence", description="Evidence of the docs."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    keep_parser = commands.add_parser("keep", help="write the curves of runs into docs/evidence")
    keep_parser.add_argument("experiment", metavar="EXPERIMENT")
    keep_parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", type=Path)
    keep_parser.add_argument(
        "--commit", default=None, help="commit of the code that ran; default: the commit of this checkout"
    )
    keep_parser.add_argument("--machine", required=True, help="what it was, and what else it did")
    commands.add_parser("draw", help="draw all tables and pictures again")
    options = parser.parse_args(arguments)
    if options.command == "keep":
        for run_dir in options.run_dirs:
            print(keep(options.experiment, run_dir, options.machine, options.commit or commit()))
        return 0
    for path in draw():
        print(path)
    return 0


def keep(experiment: str, run_dir: Path, machine: str, commit: str) -> Path:
    """Writes the curve of a run; returns the file."""
    directory = RunDirectory(run_dir)
    config = load_config(str(directory.config))
    evaluations = read_records(directory.metrics("eval"))
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
    text = io.StringIO()
    for name, fact in facts.items():
        text.write(f"# {name}: {fact}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for record in evaluations:
        minutes = (record["time"] - created.timestamp()) / 60
        returns = record["returns"]
        row = record["train_step"], record["env_steps"], f"{minutes:.2f}"
        writer.writerow([*row, f"{np.mean(returns):.6g}", f"{np.std(returns):.4g}", len(returns)])
    path = EVIDENCE / experiment / f"{config.agent.name}-{config.seed}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


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


def read_experiment(experiment: str) -> list[Curve]:
    """Reads all curves of an experiment, in the order of agents and seeds."""
    curves = [read(path) for path in (EVIDENCE / experiment).glob("*.csv")]
    return sorted(curves, key=lambda curve: (curve.agent, curve.seed))


def draw() -> Iterator[Path]:
    """Rewrites the tables in the pages and the pictures; yields the files that were written."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        experiments = [match[2] for match in _BLOCK.finditer(text)]
        if not experiments:
            continue
        page.write_text(with_tables(text), encoding="utf-8")
        yield page
        for experiment in experiments:
            path = PICTURES / f"{experiment}.png"
            _picture(read_experiment(experiment)).savefig(path, dpi=110)
            yield path


def with_tables(page: str) -> str:
    """Returns a page with the tables between its markers made again."""

    def block(match: re.Match[str]) -> str:
        return match[1] + "\n" + "\n".join(table(read_experiment(match[2]))) + "\n\n" + match[3]

    return _BLOCK.sub(block, page)


def table(curves: Sequence[Curve]) -> list[str]:
    """Returns a Markdown table: all runs at equal env steps, at equal minutes, and at their ends.

    Below it are how often runs fell, and the commands, each once, with the commit and the machine.
    """
    env_step = min(curve.env_steps[-1] for curve in curves)
    minute = min(curve.minutes[-1] for curve in curves)
    header = ("agent", "seed", f"at {env_step:,} env steps", f"after {minute:.1f} minutes",
              "at the end", "best policy")  # fmt: skip
    lines = markdown.table(header, [_row(curve, env_step, minute) for curve in curves])
    falls = sum(curve.falls() for curve in curves)
    all_of_them = sum(len(curve.second_half()) for curve in curves)
    what = "Evaluations of the second half that are no better than their run's first"
    lines += ["", f"{what}: {falls} of {all_of_them}.", ""]
    for curve in curves:
        command = f"    {re.sub('seed=[0-9]+', 'seed=SEED', curve.facts['command'])}"
        if command not in lines:
            lines.append(command)
    sources = {
        f"Commit {curve.facts['commit']}, {curve.facts['date']}, {curve.facts['machine']}."
        for curve in curves
    }
    return [*lines, "", *sorted(sources)]


def _row(curve: Curve, env_step: int, minute: float) -> tuple[str, ...]:
    digits = decimals(*curve.returns)
    end = (
        f"{curve.returns[-1]:.{digits}f} ({curve.env_steps[-1]:,} env steps, {curve.minutes[-1]:.1f} minutes)"
    )
    return (
        curve.agent,
        str(curve.seed),
        f"{curve.at_env_step(env_step):.{digits}f}",
        f"{curve.at_minute(minute):.{digits}f}",
        end,
        curve.facts["best"],
    )


def _picture(curves: Sequence[Curve]) -> Figure:
    """Draws all curves against env steps and against minutes, a colour for each agent."""
    figure = Figure(figsize=(8.5, 3.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    colours = dict(zip(dict.fromkeys(curve.agent for curve in curves), COLOURS, strict=False))
    labelled: set[str] = set()
    for curve in curves:
        label = None if curve.agent in labelled else curve.agent
        labelled.add(curve.agent)
        panels[0].plot(curve.env_steps, curve.returns, color=colours[curve.agent], label=label)
        panels[1].plot(curve.minutes, curve.returns, color=colours[curve.agent])
    panels[0].set_xlabel("env steps")
    panels[0].set_ylabel("AverageReturn")
    panels[0].legend()
    panels[1].set_xlabel("minutes")
    return figure


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


def commit() -> str:
    """Returns the short name of this checkout's commit."""
    command = ["git", "-C", str(DOCS), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
