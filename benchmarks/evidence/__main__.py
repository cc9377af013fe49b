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
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.evidence.curves import keep, read_directory
from benchmarks.evidence.tables import comparison, endings, picture
from benchmarks.others import tables as others
from benchmarks.others.picture import picture as picture_of_others
from benchmarks.support.report import commit

DOCS = Path(__file__).resolve().parents[2] / "docs"
EVIDENCE = DOCS / "evidence"
PICTURES = DOCS / "pictures"

_BLOCK = re.compile(r"(<!-- (evidence|endings|others): ([\w-]+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
"""Its groups: the opening comment, the kind of the block, its EXPERIMENT, and the closing comment."""


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
            print(keep(EVIDENCE / options.experiment, run_dir, options.machine, options.commit or commit()))
        return 0
    for path in draw():
        print(path)
    return 0


def draw() -> Iterator[Path]:
    """Rewrites the tables in the pages, and the pictures they show; yields the files that were written."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        blocks = _BLOCK.findall(text)
        if not blocks:
            continue
        page.write_text(with_tables(text), encoding="utf-8")
        yield page
        for _, kind, experiment, _ in blocks:
            for name, figure in _pictures(kind, EVIDENCE / experiment):
                path = PICTURES / f"{experiment}{name}.png"
                if f"pictures/{path.name}" in text:
                    figure.savefig(path, dpi=110)
                    yield path


def with_tables(page: str) -> str:
    """Returns a page with the tables between its markers made again."""

    def block(match: re.Match[str]) -> str:
        begin, kind, experiment, end = match.groups()
        return begin + "\n" + "\n".join(_table(kind, EVIDENCE / experiment)) + "\n\n" + end

    return _BLOCK.sub(block, page)


def _table(kind: str, folder: Path) -> list[str]:
    """Returns the lines of the table of a folder of evidence."""
    if kind == "evidence":
        return comparison(read_directory(folder))
    if kind == "endings":
        return endings([read_directory(task) for task in sorted(folder.iterdir())])
    return others.tables(folder)


def _pictures(kind: str, folder: Path) -> Iterator[tuple[str, Figure]]:
    """Yields each picture of a folder of evidence, after the suffix of its file name."""
    if kind == "evidence":
        yield "", picture(read_directory(folder))
    elif kind == "others":
        for runs in others.tasks(folder):
            yield f"-{runs[0].job.environment}", picture_of_others(runs)


if __name__ == "__main__":
    sys.exit(main())
