"""The command `python -m benchmarks`: its exit code and what it shows."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.support import report

REACHED = report.Row("writer", "CPU µs an env step", 178.0, 13.0, 0.07, 0.25, False, "1 environment")
MISSED = report.Row("learner", "train steps a second", 100.0, 96.0, 0.96, 0.97, True, "threads 1 and 2")


@pytest.fixture(name="measured")
def _measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Runs no benchmark: `writer` reaches its goal, `learner` misses it, all others crash."""
    ran: list[str] = []

    def run(arguments: Sequence[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        assert list(arguments[:3]) == [sys.executable, "-m", "benchmarks"]
        assert not check
        ran.append(name := arguments[3])
        rows = {"writer": REACHED, "learner": MISSED}
        if name not in rows:
            return subprocess.CompletedProcess(arguments, 1)
        report.save(tmp_path, name, [rows[name]], {}, 1.0)
        return subprocess.CompletedProcess(arguments, 0 if rows[name].reached else 1)

    monkeypatch.setattr(subprocess, "run", run)
    return ran


def test_a_missed_goal_ends_with_1_and_is_named_after_all_have_run(
    measured: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report.save(tmp_path, "memory", [REACHED], {}, 1.0)  # Of an earlier run, before it crashed.
    names = ["learner", "memory", "writer"]
    assert command.main([*names, "--directory", str(tmp_path)]) == 1
    assert measured == names
    assert capsys.readouterr().err.splitlines() == [
        "benchmarks: error: goal missed: learner: train steps a second (threads 1 and 2): 0.96, goal ≥ 0.97",
        "benchmarks: error: memory failed",
    ]
    assert not (tmp_path / "memory.json").exists()


def test_reached_goals_end_with_0(measured: list[str], tmp_path: Path) -> None:
    assert command.main(["writer", "writer", "--directory", str(tmp_path)]) == 0
    assert measured == ["writer", "writer"]


@pytest.mark.parametrize(("row", "code"), [(REACHED, 0), (MISSED, 1)])
def test_a_benchmark_by_itself_ends_with_the_same_code(
    row: report.Row,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class EndedError(Exception):
        """Raised in place of ending the process."""

    def end(ended_with: int) -> None:
        assert ended_with == code
        raise EndedError

    monkeypatch.setattr(command.os, "_exit", end)
    monkeypatch.setattr("benchmarks.writer.run", lambda: ([row], {}))
    with pytest.raises(EndedError):
        command.main(["writer", "--directory", str(tmp_path)])
    assert ("goal missed" in capsys.readouterr().err) == bool(code)
    assert report.load(tmp_path) == [row]


def test_the_table_shows_what_was_set() -> None:
    assert report.markdown([REACHED]).splitlines()[-1] == (
        "| writer | CPU µs an env step | 1 environment | 178 | 13 | 0.07 | ≤ 0.25 | yes |"
    )
