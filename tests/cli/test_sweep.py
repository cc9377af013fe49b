"""`actorlearner sweep` refuses bad input in one line that names its own flags."""

from pathlib import Path

import pytest

from actorlearner.cli import main as cli
from actorlearner.process.stop import Stop

_ERROR = "actorlearner: error: "


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("space.yaml").write_text("agent.gamma: [0.9, 0.99]\n")


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str, space: str = "space.yaml") -> str:
    """Runs a sweep that must be refused and create no files; returns the problem."""
    before = sorted(Path().rglob("*"))
    assert cli.main(["sweep", "--config", "td3_pendulum", "--space", space, *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()  # Includes the lines that gym's first import prints.
    assert sorted(Path().rglob("*")) == before
    (problem,) = [line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)]
    return problem


@pytest.mark.parametrize("space", ["absent.yaml", "sac_pendulum", "configs/sac_pendulum.yaml"])
def test_a_space_that_is_no_file(capsys: pytest.CaptureFixture[str], space: str) -> None:
    wrong = "cannot be read: No such file or directory (--space)"
    assert _refused(capsys, space=space) == f"{space}: {wrong}; allowed: a YAML file with a mapping"


def test_evaluation_cannot_be_off(capsys: pytest.CaptureFixture[str]) -> None:
    allowed = "allowed: an integer: a sweep compares evaluations"
    off = _refused(capsys, "--set", "evaluate.interval=null")
    assert off == f"evaluate.interval: null cannot work (--set); {allowed}"
    Path("space.yaml").write_text("agent.gamma: [0.9, 0.99]\nevaluate.interval: [1000, null]\n")
    drawn = _refused(capsys)
    assert drawn == f"evaluate.interval: null cannot work (space.yaml:2); {allowed}"


def test_a_sweep_directory_that_cannot_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs").touch()
    reason = f"{Path.cwd()}/runs is not a directory"
    wrong = f"cannot be used ({reason}); allowed: a directory, there or to be made"
    assert _refused(capsys, "--sweep_dir", "runs") == f"--sweep_dir: 'runs' {wrong}"
    assert _refused(capsys) == f"--sweep_dir: without it, 'runs' {wrong}"


def test_a_sweep_directory_does_not_need_the_default_one(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs").touch()
    refused = _refused(capsys, "--sweep_dir", "sweep", space="absent.yaml")
    assert refused.startswith("absent.yaml: ")


def test_a_group_of_learners(capsys: pytest.CaptureFixture[str]) -> None:
    refused = _refused(capsys, "--set", "learn.strategy=multi_worker_mirrored", "--config", "sac_pendulum")
    assert refused == (
        "learn.strategy: multi_worker_mirrored cannot work with a command that starts one learner (--set); "
        "allowed: default, mirrored, mirrored:N or tpu"
    )


@pytest.mark.parametrize("flags", [(), ("--sweep_dir", "new/sweep")])
def test_a_database_that_cannot_be_opened_leaves_no_directory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.setattr(Stop, "install", lambda self: None)
    refused = _refused(capsys, "--storage", "nonsense://x", *flags)
    assert refused.startswith("--storage: 'nonsense://x' cannot be opened (")
