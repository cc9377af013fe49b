"""Cases that must be refused, and what is wrong with how one was refused in a process of its own."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support import bad_commands, bad_files, bad_keys
from tests.support.bad_case import Case
from tests.support.processes import REPOSITORY

_POISON = "import os\nos._exit(77)\n"
_START = "actorlearner: error: "
_TIMEOUT_S = 60


@dataclasses.dataclass(frozen=True)
class Refusal:
    """The outcome of a case."""

    case: Case
    expected: tuple[str, ...]
    exit_code: int
    out: str
    err: str
    left: tuple[str, ...]

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


def prepare(folder: Path) -> Path:
    """Creates the shared inputs and a TensorFlow that kills its importer; returns the inputs' folder."""
    inputs = folder / "inputs"
    inputs.mkdir()
    bad_commands.prepare(inputs)
    for package in ("tensorflow", "tf_agents", "reverb"):
        (folder / "poison" / package).mkdir(parents=True)
        (folder / "poison" / package / "__init__.py").write_text(_POISON)
    return inputs


def refuse(case: Case, folder: Path) -> Refusal:
    """Runs a case as a process, in an empty working directory."""
    inputs = prepare(folder)
    before = _tree(inputs)
    start = folder / "start"
    start.mkdir()
    paths = (folder / "poison", inputs, REPOSITORY)
    done = subprocess.run(
        [sys.executable, "-m", "actorlearner", *case.command_line(folder, inputs)],
        cwd=start,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    # The file of a run directory's lock stays: another command may be about to take the lock.
    left = {name for name in _tree(start) | (_tree(inputs) ^ before) if not name.endswith("/lock")}
    expected = tuple(case.filled_in(line, folder, inputs) for line in case.expected)
    return Refusal(case, expected, done.returncode, done.stdout, done.stderr, tuple(sorted(left)))


def _tree(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}
