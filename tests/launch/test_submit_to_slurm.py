"""The command that submits a run to Slurm, whose own commands are fakes."""

import os
import sys
from pathlib import Path

import pytest

from actorlearner.network.certificate import make_certificate
from launch.slurm import submit
from tests.support.fake_slurm import FakeSlurm
from tests.support.processes import REPOSITORY

_FOLDER = REPOSITORY / "launch" / "slurm"


@pytest.fixture(name="slurm")
def _slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return FakeSlurm(tmp_path, monkeypatch)


def _submit(*arguments: str) -> int:
    return submit.main(["--config", "sac_pendulum", *arguments])


def test_a_run_is_two_jobs(slurm: FakeSlurm, capfd: pytest.CaptureFixture[str]) -> None:
    own = ("--main_sbatch=--gpus=1 --time=9", "--collect_sbatch=--partition=cheap")
    run = ("--run_dir", "runs/x", "--collect_actors", "8", "--set", "seed=3")
    assert _submit(*run, *own, "--", "--partition=lab", "--account=me") == 0
    main, collect = slurm.calls("sbatch")
    role = "--config sac_pendulum --set seed=3 collect.actors=8"
    both = "sbatch --parsable --job-name=sac_pendulum"
    python = sys.executable
    options = "--partition=lab --account=me --gpus=1 --time=9"
    assert main == f"{both} {options} {_FOLDER}/main.sbatch {python} {os.getcwd()}/runs/x {role}"
    options = "--array=0-7 --dependency=after:41 --partition=lab --account=me --partition=cheap"
    assert collect == f"{both} {options} {_FOLDER}/collect.sbatch {python} 41 8 {role}"
    certificates = {(slurm.folder / f"certificate-{i}").read_text() for i in (1, 2)}
    (certificate,) = certificates
    assert len(certificate) == pytest.approx(len(make_certificate()), abs=30)
    assert "BEGIN" not in main + collect
    out = capfd.readouterr().out
    assert "main job:        41 " in out
    assert "scancel 41 42" in out


def test_an_environment_in_the_working_directory_is_found(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "my_robots.py").write_text("def make(**kwargs): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    own = ("environment.suite=my_robots:make", "environment.name=''")
    assert _submit("--run_dir", "x", "--collect_actors", "1", "--set", *own) == 0
    monkeypatch.delitem(sys.modules, "my_robots")


def test_a_folder_named_like_a_shipped_configuration_is_not_that(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sac_pendulum").mkdir()
    monkeypatch.chdir(tmp_path)
    assert _submit("--run_dir", "x", "--collect_actors", "1") == 0
    assert all(" --config sac_pendulum " in call for call in slurm.calls("sbatch"))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["--run_dir", "x", "--collect_actors", "0"],
            "--collect_actors: '0' cannot be used; allowed: an inte",
        ),
        (["--collect_actors", "1"], "--run_dir: it is missing; allowed: a directory that"),
        (["--run_dir", "x", "--collect_actors", "1", "--set", "agent.gamma=7"], "agent.gamma: 7"),
        (
            ["--run_dir", "x", "--collect_actors", "1", "--set", "learn.strategy=multi_worker_mirrored"],
            "learn.strategy: multi_worker_mirrored cannot work with a command that starts one learner",
        ),
        (
            ["--run_dir", "x", "--collect_actors", "1", "--main_sbatch=a'"],
            '--main_sbatch: "a\'" cannot be used',
        ),
    ],
)
def test_a_refused_command_submits_nothing(
    slurm: FakeSlurm, capfd: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    assert _submit(*arguments) == 2
    assert capfd.readouterr().err.startswith(f"submit.py: error: {problem}")
    assert not slurm.calls()


def test_no_half_of_a_run_is_left(slurm: FakeSlurm, capfd: pytest.CaptureFixture[str]) -> None:
    slurm.write("full", "")
    assert _submit("--run_dir", "x", "--collect_actors", "1") == 1
    line = "submit.py: error: sbatch failed, exit code 1: sbatch: error: queue full\n"
    assert capfd.readouterr().err == line
    assert slurm.calls()[-1] == "scancel 41"


def test_without_slurm_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _submit("--run_dir", "x", "--collect_actors", "1") == 1
    line = "submit.py: error: there is no sbatch here; allowed: a machine that submits to Slurm\n"
    assert capfd.readouterr().err == line
