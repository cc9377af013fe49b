"""The two jobs of a run; Slurm's own commands are fakes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actorlearner.acting.collect_metrics import recorded_env_steps
from actorlearner.network.certificate import CERTIFICATE_VARIABLE
from actorlearner.on_slurm.role_step import RoleStep
from actorlearner.on_slurm.slurm_commands import Job, find, requeue
from actorlearner.records.run_directory import RunDirectory
from tests.support.fake_slurm import RUNNING, FakeSlurm
from tests.support.processes import REPOSITORY, wait_for

_SERVES = "while :; do sleep 0.05; done"


@pytest.fixture(name="slurm")
def _slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return FakeSlurm(tmp_path, monkeypatch)


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(name="start")
def _start(slurm: FakeSlurm) -> Iterator[Start]:
    """Starts a job as Slurm does."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        own = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "node3", "SLURM_RESTART_COUNT": "1"}
        task = {"SLURM_ARRAY_JOB_ID": "8", "SLURM_ARRAY_TASK_ID": "2", "PYTHONPATH": str(REPOSITORY)}
        process = subprocess.Popen(
            [sys.executable, "-m", "actorlearner.on_slurm", *arguments],
            env=os.environ | own | task | {CERTIFICATE_VARIABLE: "secret"} | environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
    for step in (slurm.folder / "steps").iterdir():
        os.kill(int(step.read_text()), signal.SIGKILL)
    for process in started:
        process.communicate()  # Ends once no step has its standard error any more.


def _main(slurm: FakeSlurm, start: Start, learner: str, server: str = _SERVES) -> subprocess.Popen[str]:
    for role, does in {"replay-server": server, "learner": learner, "eval-actor": "touch evaluated"}.items():
        slurm.write(role, does)
    return start("main", str(slurm.folder / "run"), "--config", "c")


def _wait_for_evaluation(slurm: FakeSlurm) -> None:
    """Waits until the eval actor's step has ended; a job that ends before would cancel this step as well."""
    step, done = slurm.folder / "steps" / "eval-actor", slurm.folder / "evaluated"
    wait_for(lambda: done.exists() and not step.exists(), "the eval actor's end")


def _end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def test_what_slurm_shows_of_a_job(slurm: FakeSlurm) -> None:
    assert find("7") == Job("RUNNING", "node3:4242")
    slurm.write("job", RUNNING.replace("Restarts=1", "Restarts=2").replace("Unknown", "1970-01-01T00:00:00"))
    found = find("7")
    assert found is not None
    # The address is of an earlier time slice.
    assert (found.address, found.ended) == ("", False)
    assert found.time_limit == time.mktime((1970, 1, 1, 0, 0, 0, 0, 0, 0))
    slurm.write("job", RUNNING.replace("Comment=actorlearner:1:node3:4242", "Comment=(null)"))
    assert find("7") == Job("RUNNING")
    for state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"):
        slurm.write("job", RUNNING.replace("RUNNING", state))
        assert find("7").ended  # type: ignore[union-attr]
    (slurm.folder / "job").unlink()
    assert find("7") == Job("UNKNOWN")


def test_the_time_limit_is_known_whatever_time_format_the_user_has_set(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    show = "[[ $SLURM_TIME_FORMAT == standard ]] && date=1970-01-01T; " + f"echo {RUNNING.strip()}"
    slurm.write("bin/scontrol", "#!/bin/bash\n" + show.replace("EndTime=Unknown", "EndTime=${date}00:00:00"))
    (slurm.folder / "bin" / "scontrol").chmod(0o755)
    found = find("7")
    assert found is not None
    assert found.time_limit == time.mktime((1970, 1, 1, 0, 0, 0, 0, 0, 0))


def test_a_job_is_requeued_unless_somebody_cancelled_it(
    slurm: FakeSlurm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert requeue("7", time.time() + 60) == 0
    assert slurm.calls("scontrol requeue") == ["scontrol requeue 7"]
    slurm.write("job", RUNNING.replace("RUNNING", "COMPLETING"))
    assert requeue("7", time.time() + 60) == 143
    assert len(slurm.calls("scontrol requeue")) == 1
    assert requeue("7", time.time() - 1) == 0  # Slurm ends it because of its time limit.
    slurm.write("forbidden", "")
    assert requeue("7", time.time() - 1) == 1
    line = "job 7 cannot be requeued (Requested operation is disabled); submit the run again with the same"
    assert line in capsys.readouterr().err


def test_a_role_that_keeps_dying_is_given_up(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm.write("learner", "exit 5")
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    role = RoleStep("learner")

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


def wait_until_ended(role: RoleStep) -> bool:
    assert role._process is not None
    role._process.wait(timeout=60)
    return not role.running


def test_crashes_after_a_long_time_do_not_count_towards_the_limit(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.write("learner", "exit 5")
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    role = RoleStep("learner")
    for _ in range(12):
        assert role.check() is None
        assert wait_until_ended(role)
        now += 601
        assert role.check() is None
        now += 30


def test_the_main_job_ends_with_training(slurm: FakeSlurm, start: Start) -> None:
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


def test_a_refused_configuration_ends_the_job_for_good(slurm: FakeSlurm, start: Start) -> None:
    code, err = _end(_main(slurm, start, "exit 2"))
    assert (code, err) == (2, "")
    assert not slurm.calls("scontrol requeue")
    assert not list((slurm.folder / "steps").iterdir())


@pytest.mark.parametrize("serves", [True, False])
def test_before_the_time_limit_the_roles_save_and_the_job_is_requeued(
    slurm: FakeSlurm, start: Start, serves: bool
) -> None:
    metrics = "mkdir -p run/replay-server/metrics && touch run/replay-server/metrics/replay.jsonl; "
    process = _main(slurm, start, _SERVES, (metrics if serves else "") + _SERVES)
    learner, server = (slurm.folder / "steps" / role for role in ("learner", "replay-server"))
    pids = [
        wait_for(lambda path=path: path.exists() and path.read_text(), "a role") for path in (learner, server)
    ]
    if serves:
        wait_for((slurm.folder / "run/replay-server/metrics/replay.jsonl").exists, "metrics")
    _wait_for_evaluation(slurm)
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


def test_a_job_that_is_cancelled_saves_and_is_not_requeued(slurm: FakeSlurm, start: Start) -> None:
    process = _main(slurm, start, _SERVES)
    wait_for((slurm.folder / "steps" / "learner").exists, "a role")
    _wait_for_evaluation(slurm)
    process.terminate()
    assert _end(process) == (143, "")
    assert len(slurm.calls("scancel")) == 2
    assert not slurm.calls("scontrol requeue")


@pytest.mark.parametrize("which", ["main", "collect"])
def test_without_the_certificate_nothing_starts(slurm: FakeSlurm, start: Start, which: str) -> None:
    code, err = _end(start(which, "7", "1", ACTORLEARNER_CERTIFICATE=""))
    assert code == 2
    assert "ACTORLEARNER_CERTIFICATE is not set; allowed: jobs of submit.py" in err
    assert not slurm.calls()


@pytest.mark.parametrize(("state", "code"), [("COMPLETED", 0), ("FAILED", 1), ("CANCELLED", 1)])
def test_an_actor_ends_with_the_main_job(slurm: FakeSlurm, start: Start, state: str, code: int) -> None:
    slurm.write("job", RUNNING.replace("RUNNING", state))
    ended, err = _end(start("collect", "7", "4"))
    assert ended == code
    assert f"the main job 7 has ended: {state}" in err
    assert not slurm.calls("srun")


def test_an_actor_follows_the_main_job(slurm: FakeSlurm, start: Start) -> None:
    slurm.write("collect-actor", _SERVES)
    slurm.write("job", RUNNING.replace("RUNNING", "PENDING").replace("Restarts=1", "Restarts=0"))
    process = start("collect", "7", "4", "--config", "c")
    wait_for(lambda: slurm.calls("scontrol"), "a question")
    assert not slurm.calls("srun")
    slurm.write("job", RUNNING)
    wait_for(lambda: slurm.calls("srun"), "the actor")
    slurm.write("job", RUNNING.replace("Restarts=1", "Restarts=2").replace("1:node3:4242", "2:node5:99"))
    first, second = wait_for(lambda: len(slurm.calls("srun")) == 2 and slurm.calls("srun"), "the next")
    assert first.endswith(" --actor_index 2 --replay_address node3:4242")
    assert second.endswith(" --actor_index 2 --replay_address node5:99")
    assert "actorlearner collect-actor --config c --tls " in second
    assert " --run_dir /" in second
    wait_for((slurm.folder / "steps" / "collect-actor").exists, "its step")
    process.send_signal(signal.SIGUSR1)
    code, err = _end(process)
    assert code == 0
    assert "waiting for the replay server of the main job 7, which is PENDING" in err
    assert slurm.calls()[-1] == "scontrol requeue 8_2"  # One task, not the array.
    assert not list((slurm.folder / "steps").iterdir())


@pytest.mark.parametrize("requeues", [0, 2])
def test_an_actor_takes_other_seeds_in_each_time_slice(slurm: FakeSlurm, start: Start, requeues: int) -> None:
    slurm.write("collect-actor", _SERVES)
    process = start("collect", "7", "4", SLURM_RESTART_COUNT=str(requeues))
    (call,) = wait_for(lambda: slurm.calls("srun"), "the actor")
    run_dir = call.partition(" --run_dir ")[2].split()[0]
    # The actor derives its seeds from this number; see `seed_for`.
    assert recorded_env_steps(RunDirectory(Path(run_dir)), actor_index=2) == requeues
    process.terminate()
    assert _end(process)[0] == 143


def test_a_wait_is_not_ended_by_an_earlier_child_process() -> None:
    code = (  # In a process with one thread: another one would take the signal.
        "import subprocess, time; from actorlearner.on_slurm import signals; signals.block(); "
        "subprocess.run(['true'], check=True); began = time.monotonic(); "
        "assert signals.wait(0.2) == 0; assert time.monotonic() - began > 0.1"
    )
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, timeout=60, check=True)
