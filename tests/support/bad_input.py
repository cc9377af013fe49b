"""Runs every case that must be refused; `python -m tests.support.bad_input` prints the durations.

Each command line runs in its own process, two at a time, in an empty working directory. The first of each
kind starts an interpreter; the others are forks of a process that has imported it, which is faster.
"""

import argparse
import dataclasses
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.support import bad_commands, bad_files, bad_keys
from tests.support.bad_case import Case
from tests.support.forks import Ended, Forks
from tests.support.processes import REPOSITORY

AT_ONCE = 2
LIMIT_S = 3.0
"""Maximum CPU seconds of a refusal."""

_POISON = "import os\nos._exit(77)\n"
_START = "actorlearner: error: "
_KILL_S = 60
_SEED = 20_240_229
_SAMPLE = {"key": 16, "file": 20, "environment": 12, "other run": 9}
_SAMPLE_OF_OTHERS = 5

Run = Callable[[Sequence[str], Path, Path, Path], Ended]
"""Runs the command with arguments, in a folder, with its standard output and error in files."""


@dataclasses.dataclass(frozen=True)
class Refusal:
    """The outcome of a case."""

    case: Case
    expected: tuple[str, ...]
    exit_code: int
    out: str
    err: str
    left: tuple[str, ...]
    wall_s: float
    cpu_s: float

    def complaints(self) -> list[str]:
        """Returns what is wrong with the refusal; empty if nothing is."""
        found = [] if self.exit_code == 2 else [f"exit code {self.exit_code}"]
        lines = self.err.splitlines()
        if self.out:
            found.append(f"standard output: {self.out[:200]}")
        if not lines or not all(line.startswith(_START) for line in lines):
            found.append(f"standard error: {self.err[-1_000:]}")
        found += [f"no line {start!r}" for start in self.expected if not _begins(lines, start)]
        if self.left:
            found.append(f"left behind: {', '.join(self.left)}")
        return [*found, f"standard error was {self.err[:1_000]}"] if found else []


def _begins(lines: Iterable[str], start: str) -> bool:
    return any(line.startswith(_START + start) for line in lines)


def all_cases() -> Iterator[Case]:
    """Yields every case, always the same in the same order."""
    yield from bad_keys.key_cases()
    yield from bad_keys.misspelt_cases()
    yield from bad_keys.section_cases()
    yield from bad_keys.combined_cases()
    yield from bad_keys.mutated_cases()
    yield from bad_files.file_cases()
    yield from bad_files.mutated_files()
    yield from bad_commands.command_cases()
    yield from bad_commands.environment_cases()
    yield from bad_commands.run_cases()


def process_cases() -> list[Case]:
    """Returns a sample of every kind, small enough to start processes in a test."""
    chance = random.Random(_SEED)
    chosen: dict[str, list[Case]] = {}
    for case in all_cases():
        chosen.setdefault(case.kind, []).append(case)
    return [
        case
        for kind, cases in chosen.items()
        for case in chance.sample(cases, min(len(cases), _SAMPLE.get(kind, _SAMPLE_OF_OTHERS)))
    ]


def prepare(folder: Path) -> Path:
    """Creates the shared inputs and a TensorFlow that kills its importer; returns the inputs' folder."""
    inputs = folder / "inputs"
    inputs.mkdir()
    bad_commands.prepare(inputs)
    for package in ("tensorflow", "tf_agents", "reverb"):
        (folder / "poison" / package).mkdir(parents=True)
        (folder / "poison" / package / "__init__.py").write_text(_POISON)
    return inputs


def refuse_all(cases: Iterable[Case], folder: Path) -> list[Refusal]:
    """Runs each case in its own process: the first of each kind in a new interpreter, the others in forks."""
    inputs = prepare(folder)
    before = _tree(inputs)

    environment = _environment(inputs)
    kinds: set[str] = set()
    forks: queue.SimpleQueue[Forks] = queue.SimpleQueue()
    for _ in range(AT_ONCE):
        forks.put(Forks(environment, _KILL_S))

    def fork(arguments: Sequence[str], folder: Path, out: Path, err: Path) -> Ended:
        mine = forks.get()
        try:
            return mine.run(arguments, folder, out, err)
        finally:
            forks.put(mine)

    def start(arguments: Sequence[str], folder: Path, out: Path, err: Path) -> Ended:
        return _start(environment, arguments, folder, out, err)

    def refuse(job: tuple[int, Case, Run]) -> Refusal:
        number, case, run = job
        place = folder / str(number)
        (place / "start").mkdir(parents=True)
        refusal = _refuse(case, place, inputs, run)
        left = {*map(str, (place / "start").rglob("*")), *(_tree(inputs) ^ before)}
        # The file of a run directory's lock stays: another command may be about to take the lock.
        left = {name for name in left if not name.endswith("/lock")}
        return dataclasses.replace(refusal, left=tuple(sorted(left)))

    jobs: list[tuple[int, Case, Run]] = []
    for number, case in enumerate(cases):
        jobs.append((number, case, fork if case.kind in kinds else start))
        kinds.add(case.kind)
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(refuse, jobs))
    finally:
        for _ in range(AT_ONCE):
            forks.get().close()


def _environment(inputs: Path) -> dict[str, str]:
    paths = (inputs.parent / "poison", inputs, REPOSITORY)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _refuse(case: Case, place: Path, inputs: Path, run: Run) -> Refusal:
    arguments = case.command_line(place, inputs)
    out, err = place / "out", place / "err"
    began = time.monotonic()
    ended = run(arguments, place / "start", out, err)
    wall_s = time.monotonic() - began
    expected = tuple(case.filled_in(start, place, inputs) for start in case.expected)
    output = (out.read_text(), err.read_text())
    return Refusal(case, expected, ended.exit_code, *output, (), wall_s, ended.cpu_s)


def _start(
    environment: Mapping[str, str], arguments: Sequence[str], folder: Path, out: Path, err: Path
) -> Ended:
    """Runs the command in a new interpreter."""
    with out.open("wb") as to_out, err.open("wb") as to_err:
        process = subprocess.Popen(
            [sys.executable, "-m", "actorlearner", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=to_out,
            stderr=to_err,
            start_new_session=True,
        )
    timer = threading.Timer(_KILL_S, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(process.returncode, usage.ru_utime + usage.ru_stime)


def _tree(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def main() -> int:
    """Prints a table of the kinds; returns 1 if any case was refused wrongly or not at all."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.bad_input", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all cases, not a sample of the large kinds")
    options = parser.parse_args()
    cases = list(all_cases()) if options.all else process_cases()
    with tempfile.TemporaryDirectory() as folder:
        refused = refuse_all(cases, Path(folder))
    table = Table("kind", "cases", "slowest s", "slowest CPU s")
    for kind in dict.fromkeys(case.kind for case in cases):
        of_kind = [refusal for refusal in refused if refusal.case.kind == kind]
        table.add_row(kind, str(len(of_kind)), *_slowest(of_kind))
    Console().print(table)
    bad = [refusal for refusal in refused if refusal.complaints()]
    for refusal in bad:
        case = refusal.case
        print(f"{case.kind}: {case.name}: {'; '.join(refusal.complaints())}", file=sys.stderr)
    wall, cpu = _slowest(refused)
    well = "all refused with exit code 2" if not bad else f"{len(bad)} refused wrongly or not at all"
    print(f"{len(cases)} cases, {well}, slowest {wall} s ({cpu} s of the processor)")
    return 1 if bad else 0


def _slowest(refusals: list[Refusal]) -> tuple[str, str]:
    wall = max(refusal.wall_s for refusal in refusals)
    cpu = max(refusal.cpu_s for refusal in refusals)
    return f"{wall:.2f}", f"{cpu:.2f}"


if __name__ == "__main__":
    sys.exit(main())
