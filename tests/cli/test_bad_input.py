"""Bad configurations and command lines: thousands derived from the schema, and damaged files."""

import itertools
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import actorlearner
from actorlearner.agents import registry
from actorlearner.cli import main as cli
from actorlearner.config.keys import config_keys
from tests.support import bad_input, bad_keys
from tests.support.bad_case import LOCAL, Case

CASES = {
    kind: list(cases) for kind, cases in itertools.groupby(bad_input.all_cases(), lambda case: case.kind)
}

FEWER = {"key": 29, "misspelt key": 31}
"""`main` gets every n-th case of these. n is odd, because cases alternate between the file and a flag."""


def test_every_key_of_every_agent_is_given_bad_values_in_the_file_and_as_a_flag() -> None:
    for agent in registry.agent_classes():
        keys = set(config_keys(registry.find_builder(agent).config_class))
        for as_flag in (True, False):
            cases = [case for case in bad_keys.key_cases() if (case.arguments == LOCAL) is not as_flag]
            given = {case.name.split()[1].partition("=")[0] for case in cases}
            assert keys <= given


def test_cases_are_always_the_same_and_have_names_of_their_own() -> None:
    cases = list(bad_input.all_cases())
    assert cases == list(bad_input.all_cases())
    assert len({(case.kind, case.name) for case in cases}) == len(cases)


PROCESSES = [case for cases in CASES.values() for case in cases if case is cases[0] or not case.in_process]
"""The cases that run as processes: the first of each kind, and all that cannot run inside pytest."""


def test_processes_refuse_bad_input_and_leave_no_files(tmp_path: Path) -> None:
    """Importing TensorFlow would end a process with exit code 77."""
    refusals = bad_input.refuse(PROCESSES, tmp_path)
    assert {refusal.case.name: refusal.complaints() for refusal in refusals if refusal.complaints()} == {}


def test_complaints_detects_a_case_that_is_not_refused(tmp_path: Path) -> None:
    good = Case("good", "version", ("x",), arguments=("--version",))
    (refusal,) = bad_input.refuse([good], tmp_path)
    assert refusal.out == f"actorlearner {actorlearner.__version__}\n"
    assert refusal.complaints()[:4] == [
        "exit code 0",
        f"standard output: {refusal.out}",
        "standard error: ",
        "no line 'x'",
    ]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory, in a process in which no role can be started."""

    def start_role(*arguments: object, **options: object) -> int:
        return 0

    monkeypatch.setattr("actorlearner.cli.roles.start_role", start_role)
    train = types.ModuleType("actorlearner.local.train")
    train.run_local = start_role  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, train.__name__, train)
    folder = tmp_path / "start"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if name.startswith("bad_"):
            del sys.modules[name]


@pytest.mark.parametrize("kind", sorted(set(CASES) - {"other run"}))
def test_main_refuses(
    kind: str, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    inputs = bad_input.prepare(tmp_path)
    monkeypatch.syspath_prepend(str(inputs))
    bad = {}
    for case in filter(lambda case: case.in_process, CASES[kind][:: FEWER.get(kind, 1)]):
        place = tmp_path / "place"
        place.mkdir(exist_ok=True)
        code = cli.main(case.command_line(place, inputs))
        out, err = capfd.readouterr()
        left = tuple(os.listdir(start))
        expected = tuple(case.filled_in(line, place, inputs) for line in case.expected)
        refusal = bad_input.Refusal(case, expected, code, out, err, left)
        if refusal.complaints():
            bad[case.name] = refusal.complaints()
    assert bad == {}
