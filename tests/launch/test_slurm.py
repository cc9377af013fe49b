"""The jobs of a run and the command that submits them; Slurm's own commands are fakes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actorlearner.network.certificate import make_certificate
from launch.slurm import job, submit
from tests.support.processes import REPOSITORY, wait_for

_FOLDER = REPOSITORY / "launch" / "slurm"

# The id of a step is its process id. `job` is what scontrol shows, ROLE is what a role does. A call is noted
# once `job` was read: a test that has seen the call may replace the file.
_FAKE = """#!/bin/bash
cd "$FAKE" && job=$(cat job 2>&-)
name=${0##*/} && echo "$name $*" >>calls
case "$name $*" in
  "scontrol --oneliner show job "*)
    [[ $job ]] && echo "$job" && exit
    echo "slurm_load_jobs error: Invalid job id specified" >&2
    exit 1 ;;
  "scontrol requeue "*) [[ ! -e forbidden ]] || { echo "Requested operation is disabled" >&2; exit 1; } ;;
  "squeue "*) for step in steps/*; do echo "$(<"$step") ${step#steps/}"; done ;;
  "scancel --signal="*) kill "-${1#--signal=}" "$2" ;;
  "sbatch "*)
    printf '%s' "$ACTORLEARNER_CERTIFICATE" >"certificate-$(grep -c ^sbatch calls)"
    [[ ! -e full || $(grep -c ^sbatch calls) == 1 ]] || { echo "sbatch: error: queue full" >&2; exit 1; }
    echo "$((40 + $(grep -c ^sbatch calls)));cluster" ;;
  "srun "*)
    role=$(grep -o -- '--job-name=[^ ]*' <<<"$*" | cut -d= -f2)
    trap 'rm "steps/$role"' EXIT
    trap 'exit 143' TERM
    echo $$ >"$role.step" && mv "$role.step" "steps/$role"
    source "./$role" ;;
esac
"""
_SERVES = "while :; do sleep 0.05; done"
_SHOWN = "JobId=7 JobName=x JobState={state} Restarts={restarts} EndTime={end} Comment={comment} Power=\n"
_RUNNING = _SHOWN.format(state="RUNNING", restarts=1, end="Unknown", comment="actorlearner:1:node3:4242")


class Slurm:
    """The fake, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "steps").mkdir()
        (folder / "bin").mkdir()
        for name in ("scontrol", "squeue", "scancel", "sbatch", "srun"):
            (folder / "bin" / name).write_text(_FAKE)
            (folder / "bin" / name).chmod(0o755)
        self.path = f"{folder / 'bin'}:{os.environ['PATH']}"

    def write(self, name: str, text: str) -> None:
        """Replaces a file at once: a fake may be reading it."""
        (self.folder / "new").write_text(text)
        (self.folder / "new").rename(self.folder / name)

    def calls(self, start: str = "") -> list[str]:
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(start)]


@pytest.fixture(name="slurm")
def _slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    slurm = Slurm(tmp_path)
    monkeypatch.setenv("PATH", slurm.path)
    monkeypatch.setenv("FAKE", str(tmp_path))
    slurm.write("job", _RUNNING)
    return slurm


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(name="start")
def _start(slurm: Slurm) -> Iterator[Start]:
    """Starts job.py as Slurm does."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        own = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "node3", "SLURM_RESTART_COUNT": "1"}
        task = {"SLURM_ARRAY_JOB_ID": "8", "SLURM_ARRAY_TASK_ID": "2", "PYTHONPATH": str(REPOSITORY)}
        process = subprocess.Popen(
            [sys.executable, str(_FOLDER / "job.py"), *arguments],
            env=os.environ | own | task | {job.CERTIFICATE_VARIABLE: "secret"} | environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    for step in (slurm.folder / "steps").iterdir():
        os.kill(int(step.read_text()), signal.SIGKILL)


def _main(slurm: Slurm, start: Start, learner: str, server: str = _SERVES) -> subprocess.Popen[str]:
    for role, does in {"replay-server": server, "learner": learner, "eval-actor": "exit 0"}.items():
        slurm.write(role, does)
    return start("main", str(slurm.folder / "run"), "--config", "c")


def _end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_what_slurm_shows_of_a_job(slurm: Slurm) -> None:
    assert job.find("7") == job.Job("RUNNING", 1, "node3:4242")
    slurm.write("job", _RUNNING.replace("Restarts=1", "Restarts=2").replace("Unknown", "1970-01-01T00:00:00"))
    found = job.find("7")
    assert found is not None
    # The address is of an earlier time slice.
    assert (found.address, found.ended) == ("", False)
    assert found.end == time.mktime((1970, 1, 1, 0, 0, 0, 0, 0, 0))
    slurm.write("job", _RUNNING.replace("Comment=actorlearner:1:node3:4242", "Comment=(null)"))
    assert job.find("7") == job.Job("RUNNING", 1)
    for state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"):
        slurm.write("job", _RUNNING.replace("RUNNING", state))
        assert job.find("7").ended  # type: ignore[union-attr]
    (slurm.folder / "job").unlink()
    assert job.find("7") == job.Job("UNKNOWN")


def test_a_job_is_requeued_unless_somebody_cancelled_it(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.requeue("7", time.time() + 60) == 0
    assert slurm.calls("scontrol requeue") == ["scontrol requeue 7"]
    slurm.write("job", _RUNNING.replace("RUNNING", "COMPLETING"))
    assert job.requeue("7", time.time() + 60) == 143
    assert len(slurm.calls("scontrol requeue")) == 1
    assert job.requeue("7", time.time() - 1) == 0  # Slurm ends it because of its time limit.
    slurm.write("forbidden", "")
    assert job.requeue("7", time.time() - 1) == 1
    line = "job 7 cannot be requeued (Requested operation is disabled); submit the run again with the same"
    assert line in capsys.readouterr().err


def test_a_role_that_keeps_dying_is_given_up(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm.write("learner", "exit 5")
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    role = job.Role("learner")

    def die() -> int | None:
        nonlocal now
        now += 30
        assert role.check() is None
        assert wait_until_ended(role)
        return role.check()

    assert [die() for _ in range(11)] == [None] * 10 + [1]
    err = capsys.readouterr().err
    assert (
        "learner died, exit code 5; starting it again in 1 s (restart 1 of at most 10 in 10 minutes)" in err
    )
    assert (
        "learner died, exit code 5; starting it again in 2 s (restart 10 of at most 10 in 10 minutes)" in err
    )
    assert "learner died, exit code 5, too often: restart 10 of at most 10 in 10 minutes" in err


def wait_until_ended(role: job.Role) -> bool:
    assert role._process is not None
    role._process.wait(timeout=60)
    return not role.running


def test_deaths_after_a_long_life_do_not_add_up(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm.write("learner", "exit 5")
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    role = job.Role("learner")
    for _ in range(12):
        assert role.check() is None
        assert wait_until_ended(role)
        now += 601
        assert role.check() is None
        now += 30


def test_the_main_job_ends_with_training(slurm: Slurm, start: Start) -> None:
    code, err = _end(_main(slurm, start, "[[ -e died ]] || { touch died; exit 137; }"))
    assert code == 0, err
    assert err.count("learner died, exit code 137; starting it again in 1 s") == 1
    assert "training has finished" in err
    assert not list((slurm.folder / "steps").iterdir())
    (address,) = {call.split("=")[-1] for call in slurm.calls("scontrol update JobId=7 Comment=")}
    restarts, host, port = address.removeprefix("actorlearner:").split(":")
    assert (restarts, host) == ("1", "node3")
    roles = {call.split("-m actorlearner ")[1].split()[0]: call for call in slurm.calls("srun")}
    assert f" --port {port}" in roles["replay-server"]
    for role in ("learner", "eval-actor"):
        assert f" --replay_address localhost:{port}" in roles[role]
    for role, call in roles.items():
        assert f" --run_dir {slurm.folder}/run/{role} " in call
        assert "--config c --tls " in call
    assert not slurm.calls("scontrol requeue")


def test_a_refused_configuration_ends_the_job_for_good(slurm: Slurm, start: Start) -> None:
    code, err = _end(_main(slurm, start, "exit 2"))
    assert (code, err) == (2, "")
    assert not slurm.calls("scontrol requeue")
    assert not list((slurm.folder / "steps").iterdir())


@pytest.mark.parametrize("serves", [True, False])
def test_before_the_time_limit_the_roles_save_and_the_job_is_requeued(
    slurm: Slurm, start: Start, serves: bool
) -> None:
    metrics = "mkdir -p run/replay-server/metrics && touch run/replay-server/metrics/replay.jsonl; "
    process = _main(slurm, start, _SERVES, (metrics if serves else "") + _SERVES)
    learner, server = (slurm.folder / "steps" / role for role in ("learner", "replay-server"))
    pids = [
        wait_for(lambda path=path: path.exists() and path.read_text(), "a role") for path in (learner, server)
    ]
    if serves:
        wait_for((slurm.folder / "run/replay-server/metrics/replay.jsonl").exists, "metrics")
    process.send_signal(signal.SIGUSR1)
    code, err = _end(process)
    assert "the time limit is near: saving, then requeueing" in err
    # The learner saves while data still flows to it.
    assert slurm.calls("scancel") == [f"scancel --signal=TERM {pid.strip()}" for pid in pids]
    if serves:
        assert code == 0
        assert slurm.calls()[-1] == "scontrol requeue 7"
    else:  # It would be requeued for ever.
        assert code == 1
        assert "this time slice was too short for the replay server to start" in err
        assert not slurm.calls("scontrol requeue")


def test_a_job_that_is_cancelled_saves_and_is_not_requeued(slurm: Slurm, start: Start) -> None:
    process = _main(slurm, start, _SERVES)
    wait_for((slurm.folder / "steps" / "learner").exists, "a role")
    process.terminate()
    assert _end(process) == (143, "")
    assert len(slurm.calls("scancel")) == 2
    assert not slurm.calls("scontrol requeue")


@pytest.mark.parametrize("which", ["main", "collect"])
def test_without_the_certificate_nothing_starts(slurm: Slurm, start: Start, which: str) -> None:
    code, err = _end(start(which, "7", "1", ACTORLEARNER_CERTIFICATE=""))
    assert code == 2
    assert "ACTORLEARNER_CERTIFICATE is not set; allowed: jobs of submit.py" in err
    assert not slurm.calls()


@pytest.mark.parametrize(("state", "code"), [("COMPLETED", 0), ("FAILED", 1), ("CANCELLED", 1)])
def test_an_actor_ends_with_the_main_job(slurm: Slurm, start: Start, state: str, code: int) -> None:
    slurm.write("job", _RUNNING.replace("RUNNING", state))
    ended, err = _end(start("collect", "7", "4"))
    assert ended == code
    assert f"the main job 7 has ended: {state}" in err
    assert not slurm.calls("srun")


def test_an_actor_follows_the_main_job(slurm: Slurm, start: Start) -> None:
    slurm.write("collect-actor", _SERVES)
    slurm.write("job", _RUNNING.replace("RUNNING", "PENDING").replace("Restarts=1", "Restarts=0"))
    process = start("collect", "7", "4", "--config", "c")
    wait_for(lambda: slurm.calls("scontrol"), "a question")
    assert not slurm.calls("srun")
    slurm.write("job", _RUNNING)
    wait_for(lambda: slurm.calls("srun"), "the actor")
    slurm.write("job", _RUNNING.replace("Restarts=1", "Restarts=2").replace("1:node3:4242", "2:node5:99"))
    first, second = wait_for(lambda: len(slurm.calls("srun")) == 2 and slurm.calls("srun"), "the next")
    assert "--replay_address node3:4242 --actor_index 2 --run_dir " in first
    assert "--replay_address node5:99 --actor_index 2 --run_dir " in second
    assert "actorlearner collect-actor --config c --tls " in second
    wait_for((slurm.folder / "steps" / "collect-actor").exists, "its step")
    process.send_signal(signal.SIGUSR1)
    code, err = _end(process)
    assert code == 0
    assert "waiting for the replay server of the main job 7, which is PENDING" in err
    assert slurm.calls()[-1] == "scontrol requeue 8_2"  # One task, not the array.
    assert not list((slurm.folder / "steps").iterdir())


def _submit(*arguments: str) -> int:
    return submit.main(["--config", "sac_pendulum", *arguments])


def test_a_run_is_two_jobs(slurm: Slurm, capfd: pytest.CaptureFixture[str]) -> None:
    own = ("--main_sbatch=--gpus=1 --time=9", "--collect_sbatch=--partition=cheap")
    run = ("--run_dir", "runs/x", "--collect_actors", "8", "--set", "seed=3")
    assert _submit(*run, *own, "--", "--partition=lab", "--account=me") == 0
    main, collect = slurm.calls("sbatch")
    role = "--config sac_pendulum --set seed=3 collect.actors=8"
    both = "sbatch --parsable --job-name=sac_pendulum"
    python = f"{sys.executable} {_FOLDER}"
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
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "my_robots.py").write_text("def make(**kwargs): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    own = ("environment.suite=my_robots:make", "environment.name=''")
    assert _submit("--run_dir", "x", "--collect_actors", "1", "--set", *own) == 0
    monkeypatch.delitem(sys.modules, "my_robots")


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
            ["--run_dir", "x", "--collect_actors", "1", "--main_sbatch=a'"],
            '--main_sbatch: "a\'" cannot be used',
        ),
    ],
)
def test_a_refused_command_submits_nothing(
    slurm: Slurm, capfd: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    assert _submit(*arguments) == 2
    assert capfd.readouterr().err.startswith(f"submit.py: error: {problem}")
    assert not slurm.calls()


def test_no_half_of_a_run_is_left(slurm: Slurm, capfd: pytest.CaptureFixture[str]) -> None:
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
