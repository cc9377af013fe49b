"""A run on a real Slurm: each time slice resumes the previous one, and refused runs are not requeued."""

import os
import signal
from pathlib import Path

import pytest
import reverb

from actorlearner.agents.configuration import load_config
from actorlearner.config.resolved import to_yaml
from actorlearner.replay.reverb_calls import UNREACHABLE
from tests.support import numbered_run, slurm
from tests.support.processes import TINY_RUN, records, wait_for
from tests.support.slurm import submitted

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1200)]

_TRAINING_S = 125.0
"""How long the environments make training last: longer than the first time slice trains."""

_DIED = "eval-actor died, exit code 137; starting it again in 1 s"


@pytest.fixture(name="_slurm", autouse=True)
def _needs_slurm() -> None:
    if missing := slurm.missing():
        pytest.skip(f"Slurm is not tested: {missing}")


def _is_refused(address: str) -> bool:
    """Returns whether the replay server refuses a client without the certificate."""
    try:
        reverb.Client(address).server_info(timeout=3)
    except UNREACHABLE:
        return True
    return False


def _kill(role: str, path: Path) -> None:
    """Kills the process of a role of the run in this directory."""
    wanted = ["-m", "actorlearner", role]

    def find() -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_text().split("\0")
            except OSError:
                continue  # It has just ended.
            if words[1:4] == wanted and f"{path / 'run'}/{role}" in words:
                found.append(int(process.name))
        return found

    (pid,) = wait_for(find, f"the process of the {role}")
    os.kill(pid, signal.SIGKILL)


def test_a_run_interrupted_by_the_time_limit_resumes(tmp_path: Path) -> None:
    config = numbered_run.write_config(tmp_path, 1500, _TRAINING_S, actors=2)
    arguments = ("--config", str(config), "--run_dir", "run", "--collect_actors", "2")
    with submitted(tmp_path, *arguments) as job:
        metrics = tmp_path / "run" / "learner" / "metrics" / "learner.jsonl"
        wait_for(lambda: records(metrics), "train steps")
        address = job.show(job.main, "Comment").split(":", 2)[2]  # After the name and the time slice.
        assert _is_refused(address)
        assert "refused a connection from 127.0.0.1, without the run's certificate" in job.log()
        _kill("eval-actor", tmp_path)
        wait_for(lambda: _DIED in job.log(), "the log to name the death")
        job.end_time_slice()
        assert job.wait_for_end(job.main, timeout_s=600) == "COMPLETED", job.log()
        assert job.show(job.main, "Restarts") == "1"
        assert job.wait_for_end(job.collect, timeout_s=120) == "COMPLETED", job.log(0)
    assert job.log().count("the time limit is near: saving, then requeueing") == 1
    curve = [record["train_step"] for record in records(metrics)]
    assert curve == sorted(set(curve))  # No train step was rolled back.
    assert curve[-1] == 1500
    env_steps = [record["env_steps"] for record in records(metrics)]
    assert env_steps == sorted(env_steps)
    evaluations = records(tmp_path / "run" / "eval-actor" / "metrics" / "eval.jsonl")
    assert [record["train_step"] for record in evaluations] == [0, 500, 1000, 1500]
    account = numbered_run.account(tmp_path, config, tmp_path / "run" / "replay-server")
    assert (account.duplicated, account.unknown, account.torn) == (0, 0, 0), account
    assert account.stored >= 1500, account


def test_a_configuration_that_is_refused_is_not_requeued(tmp_path: Path) -> None:
    arguments = ("--config", "td3_pendulum", "--run_dir", "run", "--collect_actors", "1", "--set", *TINY_RUN)
    refused = slurm.submit(tmp_path, *arguments, "agent.gamma=7")
    assert refused.returncode == 2
    assert refused.stderr.startswith("submit.py: error: agent.gamma: 7"), refused.stderr
    assert refused.stdout == ""
    (tmp_path / "run" / "replay-server").mkdir(parents=True)
    (tmp_path / "run" / "replay-server" / "config.yaml").write_text(to_yaml(load_config("td3_pendulum")))
    with submitted(tmp_path, *arguments) as job:
        assert job.wait_for_end(job.main, timeout_s=120) == "FAILED"
        assert (job.show(job.main, "ExitCode"), job.show(job.main, "Restarts")) == ("2:0", "0")
        assert job.wait_for_end(job.collect, timeout_s=120) == "FAILED"
    assert "holds a run of another configuration: learn.batch_size: 64 here, " in job.log()
    assert f"the main job {job.main} has ended: FAILED" in job.log(0)
