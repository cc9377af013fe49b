"""The command line of chaos."""

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from actorlearner.config.schema import Config
from actorlearner.errors import RunError
from benchmarks.chaos.__main__ import main

_FLAGS = ("--duration", "60", "--seed", "0")


@pytest.fixture(name="calls")
def _calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Any, ...]]:
    """The calls of run_chaos; exp.yaml is a good configuration."""
    calls: list[tuple[Any, ...]] = []

    def run_chaos(*arguments: Any, **options: int) -> int:
        calls.append((*arguments, options))
        if options["seed"] == 1:
            raise RunError("the verdict is bad", ["one\nreason"])
        return 0

    module: Any = types.ModuleType("run_chaos")
    module.run_chaos = run_chaos
    monkeypatch.setitem(sys.modules, "benchmarks.chaos.run_chaos", module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exp.yaml").write_text("environment: {suite: gym, name: Pendulum-v1}\nagent: {name: sac}\n")
    return calls


def test_a_run(calls: list[tuple[Any, ...]]) -> None:
    assert main(["--config", "exp.yaml", *_FLAGS, "--set", "seed=3", "--run_dir", "here"]) == 0
    ((config, run_dir, experiment, options),) = calls
    assert (run_dir, experiment, options) == ("here", "exp", {"duration": 60, "seed": 0})
    assert isinstance(config, Config)
    assert config.seed == 3


def test_a_bad_verdict(calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", "exp.yaml", "--duration", "60", "--seed", "1"]) == 1
    assert capsys.readouterr().err == "error: the verdict is bad\none\nreason\n"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([*_FLAGS], "the following arguments are required: --config"),
        (
            ["--config", "exp.yaml", "--duration", "59", "--seed", "0"],
            "argument --duration: '59' cannot be used; allowed: an integer from 60",
        ),
        (
            ["--config", "exp.yaml", "--duration", "60", "--seed", "x"],
            "argument --seed: 'x' cannot be used; allowed: an integer from 0",
        ),
        (["--config", "absent.yaml", *_FLAGS], "absent.yaml"),
        (["--config", "exp.yaml", *_FLAGS, "--set", "seed=x"], "seed: "),
        (
            ["--config", "exp.yaml", *_FLAGS, "--set", "learn.strategy=multi_worker_mirrored"],
            "learn.strategy: multi_worker_mirrored cannot work with a command that starts one learner",
        ),
    ],
)
def test_bad_usage(
    calls: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str], flags: list[str], expected: str
) -> None:
    assert main(flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert expected in line
    assert not calls


def test_a_directory_with_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").touch()
    assert main(["--config", "td3_pendulum", *_FLAGS, "--run_dir", str(tmp_path)]) == 2
    problem = f"--run_dir: {tmp_path} holds a run; allowed for chaos: a new directory"
    assert capsys.readouterr().err == f"error: {problem}\n"
