"""A run as a Ray job, on a cluster whose own environment has no TensorFlow."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.process.spawn import die_with_parent
from tests.support.ports import unused_port
from tests.support.processes import MARK_VARIABLE, REPOSITORY, marked_processes, records, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.ray]

_RAY = str(REPOSITORY / "build" / "ray-cluster" / "bin" / "ray")
_JOB = "job"
_COMMAND_S = 60


@pytest.fixture(name="jobs")
def _jobs(mark: str, tmp_path: Path) -> Iterator[str]:
    """A cluster of one node; the address that takes jobs."""
    port, jobs = unused_port(), unused_port()
    ports = {"--port": port, "--dashboard-port": jobs, "--dashboard-agent-listen-port": unused_port()}
    words = [str(word) for pair in ports.items() for word in pair]
    parent = os.getpid()
    # Its sockets need a short path.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as temporary:
        head = subprocess.Popen(
            [_RAY, "start", "--head", "--block", "--num-cpus", "2", "--temp-dir", temporary, *words],
            cwd=tmp_path,
            env=os.environ | {MARK_VARIABLE: mark, "RAY_USAGE_STATS_ENABLED": "0"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: die_with_parent(parent),
        )
        address = f"http://127.0.0.1:{jobs}"
        try:
            wait_for(lambda: _run(address, "list").returncode == 0, "Ray's dashboard")
            yield address
        finally:
            head.terminate()
            head.wait(_COMMAND_S)
        wait_for(lambda: not marked_processes(mark), "the end of all processes")


def test_a_job_trains_and_stopping_it_saves_the_run(jobs: str, tmp_path: Path) -> None:
    python = {"py_executable": sys.executable, "env_vars": {"PYTHONPATH": str(REPOSITORY)}}
    run = tmp_path / "run"
    _job(
        jobs,
        *("submit", "--no-wait", "--submission-id", _JOB, "--runtime-env-json", json.dumps(python), "--"),
        *(sys.executable, "-m", "actorlearner", "ray", "--config", "ppo_cartpole", "--run_dir", str(run)),
        *("--collect_actors", "2", "--address", "auto"),
    )
    metrics = run / "metrics" / "learner.jsonl"
    wait_for(lambda: records(metrics), "train steps")
    _job(jobs, "stop", _JOB)
    output = run / "logs" / "ray.log"
    wait_for(lambda: "\nstopped at train step" in output.read_text(), "the saved run")


def _job(address: str, action: str, *arguments: str) -> None:
    done = _run(address, action, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


def _run(address: str, action: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [_RAY, "job", action, "--address", address, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S)
