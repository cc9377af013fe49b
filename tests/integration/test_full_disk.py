"""A disk that is full while checkpoints are written: the run goes on, and saves again once there is room."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY, TINY_RUN, Command, records, saved_train_step, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

_ON_A_SMALL_DISK = 'mount -t tmpfs -o size=16m tmpfs run/checkpoints && exec "$@"'


def _unshare() -> list[str]:
    """The command that gives what follows it mounts of its own; as root, or as an unprivileged user."""
    for flags in ("--mount", "--mount --user --map-root-user"):
        command = ["unshare", *flags.split()]
        probe = [*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        if (
            shutil.which("unshare")
            and subprocess.run(probe, capture_output=True, check=False).returncode == 0
        ):
            return command
    pytest.skip("this system lets us mount nothing")


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(b"\0" * 4096)
            except OSError:
                return


def test_a_full_disk_costs_checkpoints_and_nothing_else(
    start: Callable[..., Command], tmp_path: Path
) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    config = str(REPOSITORY / "configs" / "sac_pendulum.yaml")
    command = start(
        *("-c", "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"),
        *(*_unshare(), "sh", "-c", _ON_A_SMALL_DISK, "sh"),
        *(sys.executable, "-m", "actorlearner", "local", "--config", config, "--run_dir", "run"),
        *("--set", *TINY_RUN, "learn.train_steps=1000000", "evaluate.interval=1000"),
        *("learn.checkpoint_interval=300", "replay.checkpoint_interval_s=1"),
    )
    run = tmp_path / "run"
    small_disk = Path(f"/proc/{command.process.pid}/root{run}/checkpoints")

    def saved(train_step: int) -> bool:
        assert command.process.poll() is None, command.process.communicate()
        return small_disk.exists() and saved_train_step(small_disk.parent) >= train_step

    def said(role: str, what: str) -> bool:
        return what in (run / "logs" / f"{role}.log").read_text()

    wait_for(lambda: saved(300), "the first checkpoint")
    filler = small_disk / "filler"
    _fill(filler)
    wait_for(lambda: said("learner", "was not saved: "), "the learner to find the disk full")
    wait_for(
        lambda: said("replay-server", "replay was not saved: "), "the replay server to find the disk full"
    )
    kept = saved_train_step(small_disk.parent)
    trained = records(run / "metrics" / "learner.jsonl")[-1]["train_step"]
    wait_for(
        lambda: records(run / "metrics" / "learner.jsonl")[-1]["train_step"] > trained, "training to go on"
    )
    assert kept >= 300
    filler.unlink()
    wait_for(lambda: saved(kept + 300), "a checkpoint after there was room again")
    os.kill(command.process.pid, signal.SIGTERM)
    assert command.finish() == 143, command.err
    assert "died" not in command.out
    last = records(run / "metrics" / "learner.jsonl")[-1]["train_step"]
    assert said("learner", f"checkpoint of train step {last} written")
