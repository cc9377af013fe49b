"""A run that ended before its last train step goes on where it was: TD3 with n-step returns."""

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from actorlearner.network.private_network import PrivateNetwork, RefusedError
from actorlearner.records.plain_path import plain_path
from actorlearner.records.seal import seal_path, sealed, sealed_facts
from tests.support.harm import corrupt, truncate
from tests.support.ports import unused_port
from tests.support.processes import (
    REPOSITORY,
    TINY_RUN,
    Command,
    marked_processes,
    records,
    saved_train_step,
    signal_role,
    status_of,
    wait_for,
)
from tests.support.reachable import is_reachable
from tests.support.scrape import scrape

pytestmark = pytest.mark.integration

Start = Callable[..., Command]

_RUN = "run [lr=3e-4] *"
"""Also a pattern, and markup of a terminal, where a path is taken for one."""

_BATCH_SIZE = 64
"""That of TINY_RUN."""

_TRAIN_STEPS = 2_000
"""Far more than are taken while a run is being stopped."""


_BULLET = ("environment.suite=pybullet", "environment.name=InvertedPendulumBulletEnv-v0")
_SLOW = (
    *("environment.suite=tests.support.burdens:make", "environment.name=''"),
    *("environment.kwargs={wait_s: 0.02}", "environment.max_episode_steps=20", "collect.actors=1"),
    "learn.checkpoint_interval=10000",
)
"""Eight env steps take 160 ms, and a train step much less; there is no checkpoint before the stop."""


def _local(start: Start, train_steps: int, *settings: str, flags: Sequence[str] = ()) -> Command:
    config = str(REPOSITORY / "configs" / "td3_pendulum.yaml")
    return start(
        *("-m", "actorlearner", "local", "--config", config, "--run_dir", _RUN, *flags),
        *("--set", *TINY_RUN, f"learn.train_steps={train_steps}", "agent.n_step=3"),
        *("evaluate.interval=500", "learn.checkpoint_interval=300", *settings),
    )


def _wait_for_train_step(command: Command, run: Path, train_step: int) -> None:
    def reached() -> bool:
        assert command.process.poll() is None, command.process.communicate()
        return saved_train_step(run) >= train_step

    wait_for(reached, f"train step {train_step}")


def _train_and_kill(start: Start, mark: str, run: Path, *settings: str) -> None:
    """Kills local mode after some checkpoints, before its last train step; all roles die with it."""
    command = _local(start, _TRAIN_STEPS, *settings)
    _wait_for_train_step(command, run, 900)
    # Without this actor, the rate limiter blocks training: the run cannot end before it is killed.
    signal_role(mark, "collect-actor-0", signal.SIGSTOP)
    wait_for(lambda: len(sealed(run / "checkpoints" / "replay")) >= 2, "two checkpoints of replay")
    assert len(marked_processes(mark)) == 6
    command.process.kill()
    command.finish()
    wait_for(lambda: not marked_processes(mark), "the end of all roles")


def _column(run: Path, name: str, key: str) -> list[Any]:
    return [record[key] for record in records(run / "metrics" / f"{name}.jsonl")]


def _may_be_private() -> bool:
    try:
        PrivateNetwork().close()
    except RefusedError:
        return False
    return True


def test_a_run_is_watched_and_stopped_by_a_signal_and_resumes_where_it_stopped(
    start: Start, mark: str, tmp_path: Path
) -> None:
    run = tmp_path / _RUN
    port = unused_port()
    command = _local(start, _TRAIN_STEPS, *_SLOW, flags=["--verbose", "--metrics_port", str(port)])
    wait_for(lambda: len(records(run / "metrics" / "learner.jsonl")) >= 4, "training")
    _check_while_it_runs(run, port, mark)
    reachable = is_reachable(run)
    began = time.monotonic()
    for pid in marked_processes(mark):  # As a service manager or a cluster's scheduler does.
        with contextlib.suppress(ProcessLookupError):  # It has ended already.
            os.kill(pid, signal.SIGTERM)
    assert command.finish() == 143, command.err
    assert time.monotonic() - began < 60
    assert marked_processes(mark) == []
    assert list((tmp_path / "temporary").iterdir()) == []
    assert f"run directory: {run}\n" in command.out
    network = "the replay server's port is open" if reachable else "private; nothing outside"
    assert f"network: {network}" in command.out
    assert not (reachable and _may_be_private())
    stopped_at = saved_train_step(run)
    _check_stopped(run, stopped_at, command.out)
    in_replay = _column(run, "replay", "size")[-1]
    env_steps = _column(run, "collect-0", "env_steps")[-1]
    manifest = json.loads((run / "manifest.json").read_text())

    command = _local(start, _TRAIN_STEPS, *_SLOW, flags=["--network", "host"])
    assert command.finish() == 0, command.err
    assert "network: the replay server's port is open" in command.out
    assert f"resuming at train step {stopped_at:,}, with " in command.out
    (resumed_with,) = [
        int(line.partition(", with ")[2].split()[0].replace(",", ""))
        for line in command.out.splitlines()
        if line.startswith("resuming")
    ]
    assert resumed_with >= in_replay  # The actors' last transitions came after the last record.
    log = (run / "logs" / "replay-server.log").read_text()
    assert f"restoring {resumed_with} transitions from the checkpoint" in log
    _check_curves(run, _TRAIN_STEPS)
    _check_staleness(run)
    assert min(_column(run, "replay", "size")[-3:]) > resumed_with
    assert _column(run, "collect-0", "env_steps")[-1] > env_steps

    command = _local(start, _TRAIN_STEPS, *_SLOW)
    assert command.finish() == 0
    assert f"this run has finished at train step {_TRAIN_STEPS:,}" in command.out
    assert json.loads((run / "manifest.json").read_text()) == manifest
    assert marked_processes(mark) == []


def _check_while_it_runs(run: Path, metrics_port: int, mark: str) -> None:
    """Checks what `status` and Prometheus find, and that there are no processes but those of the run."""
    status = status_of(run)
    assert status["state"] == "running"
    assert [each["name"] for each in status["bottlenecks"]] == ["environments"], status["waits"]
    assert {role["name"] for role in status["roles"]} >= {"learner", "replay-server", "collect-actor-0"}
    scraped = scrape(metrics_port)
    assert scraped["actorlearner_learner_train_step"] > 0
    assert scraped["actorlearner_collect_env_steps_total/0"] > 0
    assert len(marked_processes(mark)) == 6


def _check_stopped(run: Path, stopped_at: int, out: str) -> None:
    """Checks what the stopped run has saved, and what it printed."""
    assert _column(run, "learner", "train_step")[-1] == stopped_at
    assert f"stopped at train step {stopped_at:,}; saved: train step {stopped_at:,}, with " in out
    assert "; resume it with --run_dir " in out
    policy = tf.train.load_checkpoint(plain_path(run / "policies" / "policy" / "variables" / "variables"))
    assert policy.get_tensor("train_step/.ATTRIBUTES/VARIABLE_VALUE") == stopped_at
    assert "bottleneck     environments: the actors step environments " in out
    status = status_of(run)
    assert (status["state"], status["roles"], status["env_steps_per_s"]) == ("not running", [], 0)
    assert [each["name"] for each in status["bottlenecks"]] == ["environments"], status["waits"]
    for role in ("replay-server", "collect-actor-0", "eval-actor", "learner"):
        printed = [line for line in out.splitlines() if line.startswith(f"{role} | ")]
        logged = (run / "logs" / f"{role}.log").read_text().splitlines()
        assert printed == [f"{role} | {line}" for line in logged]


def _check_staleness(run: Path) -> None:
    for record in records(run / "metrics" / "learner.jsonl"):
        if record["staleness_max"] is not None:
            assert 0 <= record["staleness_mean"] <= record["staleness_max"] <= record["train_step"], record
    # Batches are drawn from all of replay, which policies of all train steps so far have filled.
    assert 0.3 * _TRAIN_STEPS < record["staleness_mean"] < _TRAIN_STEPS


def _sampled_steps(run: Path, checkpoint: str) -> int:
    """The number of train steps whose batches a replay checkpoint counts as sampled."""
    return int(sealed_facts(seal_path(run / "checkpoints" / "replay", checkpoint))["samples"]) // _BATCH_SIZE


def _miscounted(train_step: int, sampled: int) -> tuple[int, int]:
    """How far the replay server's count may be behind and ahead, after both were restored at these steps."""
    return max(0, train_step - sampled) + 400, max(0, sampled - train_step) + 400


def _check_curves(run: Path, train_steps: int, uncounted: int = 1000, overcounted: int = 400) -> None:
    """Every train step is reported once, in order, and so is every evaluation.

    Args:
      run: the run directory.
      train_steps: of the whole run.
      uncounted: the most train steps whose batches the replay server sampled and does not know of.
      overcounted: the most whose batches it sampled ahead, or for train steps that were rolled back.
    """
    steps = _column(run, "learner", "train_step")
    assert steps == sorted(set(steps))
    assert steps[-1] == train_steps
    assert _column(run, "eval", "train_step") == list(range(0, train_steps + 1, 500))
    env_steps = _column(run, "collect-0", "env_steps")
    assert env_steps == sorted(env_steps)
    assert _curve(run, "learner", "learner/loss") == steps
    assert _curve(run, "eval", "eval/AverageReturn") == _column(run, "eval", "train_step")
    # Those of the others are against train steps as well. Replay hands batches out ahead of them, and does
    # not know of those that it handed out after its checkpoint, if it was killed.
    acting, handed_out = _curve(run, "collect-0", "collect/env_steps"), _curve(run, "replay", "replay/size")
    assert acting == sorted(acting)
    assert train_steps - 1000 < acting[-1] <= train_steps
    assert train_steps - uncounted < handed_out[-1] <= train_steps + overcounted


def _curve(run: Path, role: str, tag: str) -> list[int]:
    """The train steps of a curve, as TensorBoard shows it."""
    events = EventAccumulator(str(run / "summaries" / role), tensor_size_guidance={"scalars": 0})
    return [event.step for event in events.Reload().Tensors(tag)]


@pytest.mark.long
def test_a_killed_run_resumes_from_its_checkpoints(start: Start, mark: str, tmp_path: Path) -> None:
    run = tmp_path / _RUN
    settings = (*_BULLET, "replay.checkpoint_interval_s=1", "collect.actors=1")
    _train_and_kill(start, mark, run, *settings)
    sampled = _sampled_steps(run, sealed(run / "checkpoints" / "replay")[-1])
    command = _local(start, _TRAIN_STEPS, *settings)
    assert command.finish() == 0, command.err
    (line,) = [line for line in command.out.splitlines() if line.startswith("resuming")]
    train_step = int(line.split()[4].replace(",", ""))
    assert train_step >= 900
    assert train_step % 300 == 0
    _check_curves(run, _TRAIN_STEPS, *_miscounted(train_step, sampled))

    manifest = json.loads((run / "manifest.json").read_text())
    command = _local(start, _TRAIN_STEPS + 500, *settings)
    assert command.finish() == 0, command.err
    assert f"resuming at train step {_TRAIN_STEPS:,}" in command.out
    assert "; this part took 0:0" in command.out
    _check_curves(run, _TRAIN_STEPS + 500, *_miscounted(train_step, sampled))
    after = json.loads((run / "manifest.json").read_text())
    assert {key for key in after if after[key] != manifest[key]} == {"fingerprint"}


@pytest.mark.long
def test_damaged_checkpoints_are_reported_and_older_ones_restored(
    start: Start, mark: str, tmp_path: Path
) -> None:
    run = tmp_path / _RUN
    settings = (*_BULLET, "replay.checkpoint_interval_s=1", "collect.actors=1")
    _train_and_kill(start, mark, run, *settings)

    replay = run / "checkpoints" / "replay"
    *_, (before, newest) = itertools.pairwise(sealed(run / "checkpoints" / "learner"))
    (data,) = (run / "checkpoints" / "learner").glob(f"{newest}.data*")
    truncate(data)
    damaged = sealed(replay)[-1]
    corrupt(max((replay / damaged).iterdir(), key=lambda file: file.stat().st_size))

    train_step = int(before.removeprefix("ckpt-"))
    sampled = _sampled_steps(run, sealed(replay)[-2])

    command = _local(start, _TRAIN_STEPS, *settings)
    assert command.finish() == 0, command.err
    assert f"resuming at train step {train_step:,}, with " in command.out
    assert f"learner: the checkpoint {newest} is skipped: " in command.out
    assert f"replay-server: the replay checkpoint {damaged} is skipped: " in command.out
    _check_curves(run, _TRAIN_STEPS, *_miscounted(train_step, sampled))
