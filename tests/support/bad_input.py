"""Cases that must be refused, and what is wrong with how one was refused in a process of its own."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.support import bad_commands, bad_files, bad_keys
from tests.support.bad_case import Case
from tests.support.processes import REPOSITORY

_POISON = "import os\nos._exit(77)\n"
_START = "actorlearner: error: "
_TIMEOUT_S = 150
_FORKS = """
import json, os, sys
import gym
import actorlearner.agents.configuration
from actorlearner.cli.main import main

for out, err, *command in json.loads(sys.argv[1]):
    if os.fork() == 0:
        for path, descriptor in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), descriptor)
        sys.exit(main(command))
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


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


def refuse(cases: Sequence[Case], folder: Path) -> list[Refusal]:
    """Runs each case as a process, in an empty working directory; they share the imports of the command."""
    inputs = prepare(folder)
    start = folder / "start"
    start.mkdir()
    before = _tree(inputs)
    places = [folder / str(number) for number in range(len(cases))]
    for place in places:
        place.mkdir()
    commands = [
        (str(place / "out"), str(place / "err"), *case.command_line(place, inputs))
        for case, place in zip(cases, places, strict=True)
    ]
    paths = (folder / "poison", inputs, REPOSITORY)
    done = subprocess.run(
        [sys.executable, "-c", _FORKS, json.dumps(commands)],
        cwd=start,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The file of a run directory's lock stays: another command may be about to take the lock.
    left = {name for name in _tree(start) | (_tree(inputs) ^ before) if not name.endswith("/lock")}
    return [
        Refusal(
            case,
            tuple(case.filled_in(line, place, inputs) for line in case.expected),
            int(code),
            (place / "out").read_text(),
            (place / "err").read_text(),
            tuple(sorted(left)),
        )
        for case, place, code in zip(cases, places, done.stdout.split(), strict=True)
    ]


def _tree(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}
