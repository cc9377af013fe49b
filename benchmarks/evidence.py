"""Keeps the curves of finished runs in docs/evidence, and draws the docs' tables and pictures from them.

    .venv/bin/python -m benchmarks.evidence keep minitaur runs/minitaur-* --machine "two idle cores of ..."
    .venv/bin/python -m benchmarks.evidence draw

`keep` writes docs/evidence/EXPERIMENT/AGENT-SEED.csv for each run: a line for each evaluation of the greedy
policy, below comments with the command, the commit and the machine. `draw` rewrites three kinds of blocks in
the docs' pages:

- `<!-- evidence: EXPERIMENT -->` to `<!-- /evidence -->`: the runs of EXPERIMENT beside each other; it also
  makes docs/pictures/EXPERIMENT.png, if the page shows it.
- `<!-- endings: EXPERIMENT -->` to `<!-- /endings -->`: what the runs of each EXPERIMENT/TASK returned.
- `<!-- others: EXPERIMENT -->` to `<!-- /others -->`: other libraries beside ours. `benchmarks.others` wrote
  the folder EXPERIMENT. It also makes docs/pictures/EXPERIMENT-ENVIRONMENT.png, if the page shows it.
"""

import argparse
import csv
import dataclasses
import io
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from actorlearner.acting.best_record import read_best
from actorlearner.agents.configuration import load_config
from actorlearner.records.metrics import read_records, without_rolled_back
from actorlearner.records.run_directory import RunDirectory
from benchmarks.evidence_curves import read_directory
from benchmarks.evidence_tables import comparison, endings, picture
from benchmarks.others import tables as others
from benchmarks.others.picture import picture as picture_of_others
from benchmarks.report import commit

DOCS = Path(__file__).resolve().parent.parent / "docs"
EVIDENCE = DOCS / "evidence"
PICTURES = DOCS / "pictures"

_COLUMNS = ("train_step", "env_steps", "minutes", "average_return", "deviation", "episodes")
_FLAGS_OF_PLACE = ("--run_dir", "--metrics_port")


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


def draw() -> Iterator[Path]:
    """Rewrites the tables in the pages, and the pictures they show; yields the files that were written."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        blocks = list(_BLOCK.finditer(text))
        if not blocks:
            continue
        page.write_text(with_tables(text), encoding="utf-8")
        yield page
        for _, kind, experiment, _ in (block.groups() for block in blocks):
            for name, figure in _KINDS[kind].pictures(EVIDENCE / experiment):
                path = PICTURES / f"{experiment}{name}.png"
                if f"pictures/{path.name}" in text:
                    figure.savefig(path, dpi=110)
                    yield path


def with_tables(page: str) -> str:
    """Returns a page with the tables between its markers made again."""

    def block(match: re.Match[str]) -> str:
        begin, kind, experiment, end = match.groups()
        return begin + "\n" + "\n".join(_KINDS[kind].table(EVIDENCE / experiment)) + "\n\n" + end

    return _BLOCK.sub(block, page)


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A kind of block.

    Attributes:
      table: returns the lines of the table of a folder of evidence.
      pictures: yields each picture of the folder, after the suffix of its file name.
    """

    table: Callable[[Path], list[str]]
    pictures: Callable[[Path], Iterator[tuple[str, Figure]]] = lambda folder: iter(())


def _pictures_of_others(folder: Path) -> Iterator[tuple[str, Figure]]:
    for runs in others.tasks(folder):
        yield f"-{runs[0].job.environment}", picture_of_others(runs)


_KINDS = {
    "evidence": _Kind(
        lambda folder: comparison(read_directory(folder)),
        lambda folder: iter([("", picture(read_directory(folder)))]),
    ),
    "endings": _Kind(lambda folder: endings([read_directory(task) for task in sorted(folder.iterdir())])),
    "others": _Kind(others.tables, _pictures_of_others),
}
_BLOCK = re.compile(rf"(<!-- ({'|'.join(_KINDS)}): ([\w-]+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)


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


if __name__ == "__main__":
    sys.exit(main())
