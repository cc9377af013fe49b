"""A disk that is full to its last byte: the run continues, and writes all files again once there is room."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import tensorflow as tf

from tests.support.full_disk import fill, unshare
from tests.support.processes import (
    PATIENCE_S,
    REPOSITORY,
    TINY_RUN,
    Command,
    marked_processes,
    records,
    saved_train_step,
    wait_for,
)

pytestmark = [pytest.mark.integration, pytest.mark.long]

_ON_A_SMALL_DISK = 'mount -t tmpfs -o size=32m tmpfs run && exec "$@" >console 2>&1'
_WHAT = {
    "learner": ("metrics", "summaries", "checkpoints", "policies"),
    "replay-server": ("metrics", "checkpoints of replay"),
    "collect-actor-0": ("metrics", "summaries"),
    "eval-actor": ("metrics",),  # It waits for room before it evaluates on.
}
_PAGE = 4096
_METRICS = ("learner", "replay", "collect-0", "eval")
_CURVES = ("learner", "collect-0", "eval")


def _events(summaries: Path) -> int:
    """The number of events that TensorBoard finds; fails if one is incomplete."""
    files = sorted(map(str, summaries.glob("events.out.tfevents.*")))
    return sum(1 for _ in tf.data.TFRecordDataset(files))


def _use_up_the_page(path: Path) -> None:
    """Repeats the last record with blanks, up to the end of the page: room that a full disk still has."""
    last = path.read_bytes().splitlines()[-1]
    with path.open("ab", buffering=0) as file:
        room = -file.tell() % _PAGE
        if room > len(last):
            file.write(last.ljust(room - 1) + b"\n")


def _printed_outputs(console: Path, line: str) -> list[str]:
    """The outputs for which a role has printed `line`, as `role: output`."""
    lines = console.read_text().splitlines()
    return [
        f"{role}: {what}"
        for role in _WHAT
        for what in _WHAT[role]
        for printed in lines
        if printed.startswith(f"{role}: {line.format(what)}")
    ]


def test_a_run_survives_a_full_disk(start: Callable[..., Command], mark: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    config = str(REPOSITORY / "configs" / "td3_pendulum.yaml")
    command = start(
        *("-c", "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"),
        *(*unshare(), "sh", "-c", _ON_A_SMALL_DISK, "sh"),
        *(sys.executable, "-m", "actorlearner", "local", "--config", config, "--run_dir", "run"),
        *("--set", *TINY_RUN, "learn.train_steps=1000000", "evaluate.interval=500", "collect.actors=1"),
        *("learn.checkpoint_interval=300", "replay.checkpoint_interval_s=1"),
    )
    console = tmp_path / "console"
    run = Path(f"/proc/{command.process.pid}/root{tmp_path}/run")
    everything = sorted(f"{role}: {what}" for role, whats in _WHAT.items() for what in whats)

    def running() -> bool:
        assert command.process.poll() is None, console.read_text()
        return True

    def recorded_since(when: float) -> bool:
        newest = [records(run / "metrics" / f"{name}.jsonl")[-1]["time"] for name in _METRICS]
        return running() and min(newest) > when

    def saved(train_step: int) -> bool:
        return running() and run.exists() and saved_train_step(run) >= train_step

    def is_full() -> bool:
        fill(run)  # Again, because a checkpoint that was being written when it was full has been removed.
        return running() and set(
            _printed_outputs(console, "the disk is full: the {} are not written to ")
        ) == set(everything)

    wait_for(
        lambda: saved(300) and (run / "policies" / "policy").exists(), "the first checkpoint and policies"
    )
    wait_for(lambda: records(run / "metrics" / "eval.jsonl"), "the first evaluation")
    processes = sorted(marked_processes(mark))
    for name in _METRICS:
        path = run / "metrics" / f"{name}.jsonl"
        wait_for(lambda path=path: path.exists() and records(path), f"the first record of {name}")
        _use_up_the_page(path)
    full = time.time()
    fill(run)
    wait_for(is_full, "all roles to find the disk full")
    kept, curves = saved_train_step(run), {name: _events(run / "summaries" / name) for name in _CURVES}
    for name in _METRICS:
        for line in (run / "metrics" / f"{name}.jsonl").read_text().splitlines():
            json.loads(line)
    freed = time.time()
    (run / "filler").unlink()

    wait_for(lambda: recorded_since(freed), "all metrics to go on")
    learned = records(run / "metrics" / "learner.jsonl")
    before, meanwhile = (
        [record["train_step"] for record in learned if since < record["time"] < until]
        for since, until in ((0.0, full), (full, freed))
    )
    assert meanwhile[-1] > before[-1]
    wait_for(
        lambda: all(_events(run / "summaries" / name) > curves[name] for name in _CURVES),
        "the curves to go on",
    )
    wait_for(lambda: saved(kept + 300), "a checkpoint after there was room again")
    wait_for(
        lambda: running() and set(_printed_outputs(console, "the {} are written to ")) == set(everything),
        "all roles to log that everything is written again",
    )
    assert (run / "policies").stat().st_mtime > freed
    assert sorted(marked_processes(mark)) == processes
    os.kill(command.process.pid, signal.SIGTERM)
    assert command.process.wait(PATIENCE_S) == 143, console.read_text()
    output = console.read_text()
    assert "died" not in output
    assert sorted(_printed_outputs(console, "the disk is full: the {} are not written to ")) == everything, (
        output
    )
    assert sorted(_printed_outputs(console, "the {} are written to ")) == everything, output
