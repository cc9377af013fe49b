"""Runs the benchmarks: `python -m benchmarks` runs BY_DEFAULT, `python -m benchmarks NAME ...` runs any.

Each prints a table and writes DIRECTORY/NAME.json; `--table` prints the files as Markdown instead. Each
benchmark runs in its own process, so that none inherits the state of another. The exit code is 1 if a
benchmark failed or missed a goal; the last lines on stderr name each.
"""

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from actorlearner.environments.quiet import quiet_output
from benchmarks.support import report

BY_DEFAULT = ("sampling", "learner", "writer", "actor", "publish", "system", "memory", "startup", "mixing")
NAMES = (*BY_DEFAULT, "experience", "ppo", "precision", "gpu", "scaling", "capacity", "tls")
"""All benchmarks; the last ones run only by name."""

_DIRECTORY = Path("runs/benchmarks")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measures what the README quotes."
    )
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help=f"which: {', '.join(NAMES)} (default: {', '.join(BY_DEFAULT)})",
    )
    parser.add_argument("--directory", type=Path, default=_DIRECTORY, help="where the JSON files go")
    parser.add_argument("--table", action="store_true", help="print the figures in the directory as Markdown")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if options.table:
        print(report.markdown(report.load(options.directory)))
        for line in report.load_lines(options.directory):
            print(line)
        return 0
    if len(options.names) == 1:
        missed = _measure(options.names[0], options.directory)
        _print_errors(missed)
        sys.stdout.flush()
        os._exit(1 if missed else 0)  # Reverb's blocked threads would make the interpreter's shutdown crash.
    return _run_all(options.names or BY_DEFAULT, options.directory)


def _measure(name: str, directory: Path) -> list[str]:
    """Runs a benchmark, prints and saves its rows; returns a line for each missed goal."""
    began = time.monotonic()
    directory.mkdir(parents=True, exist_ok=True)
    with quiet_output(str(directory / f"{name}.log")):
        rows, details = importlib.import_module(f"benchmarks.{name}").run()
    path = report.save(directory, name, rows, details, time.monotonic() - began)
    console = Console()
    console.print(_table(name, rows))
    for line in report.lines(details):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    console.print(f"{path}: with every single value, after {time.monotonic() - began:.0f} s")
    return _missed(rows)


def _missed(rows: Sequence[report.Row]) -> list[str]:
    return [f"goal missed: {row.missed}" for row in rows if row.missed]


def _print_errors(lines: Sequence[str]) -> None:
    for line in lines:
        print(f"benchmarks: error: {line}", file=sys.stderr, flush=True)


def _table(name: str, rows: Sequence[report.Row]) -> Table:
    """Returns the rows as a table that is legible in 80 columns."""
    table = Table(title=name)
    _, what, _, *figures = report.HEADER
    table.add_column(what, min_width=28)
    for heading in figures:
        table.add_column(heading)
    for row in rows:
        _, what, settings, *values = report.cells(row)
        table.add_row(escape(f"{what}\n({settings})" if settings else what), *values, end_section=True)
    return table


def _run_all(names: Sequence[str], directory: Path) -> int:
    """Runs each benchmark in its own process, also after a failure; returns the exit code."""
    errors: list[str] = []
    for name in names:
        (directory / f"{name}.json").unlink(missing_ok=True)  # `--table` must not show an earlier run's rows.
        command = [sys.executable, "-m", "benchmarks", name, "--directory", str(directory)]
        if subprocess.run(command, check=False).returncode:
            errors += _missed(report.load(directory, name)) or [f"{name} failed"]
    _print_errors(errors)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
