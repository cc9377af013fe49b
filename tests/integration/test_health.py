"""Health of real roles: while they work, while they wait for each other, and when they hang."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from actorlearner.process.health import Health, check
from actorlearner.process.heartbeat import LONG_PATIENCE_S, PATIENCE_S
from actorlearner.records.run_directory import RunDirectory
from tests.support.processes import REPOSITORY, TINY_RUN, Command, wait_for

pytestmark = pytest.mark.integration

_PENDULUM = str(REPOSITORY / "configs" / "td3_pendulum.yaml")


def test_roles_are_healthy_while_they_work_or_wait_and_not_when_they_hang(
    start: Callable[..., Command], tmp_path: Path, free_port: int
) -> None:
    address = f"localhost:{free_port}"

    def role(name: str, *options: str) -> Command:
        settings = (*TINY_RUN, "learn.train_steps=1000000", "evaluate.interval=500")
        flags = ("--config", _PENDULUM, "--run_dir", name, *options, "--set", *settings)
        return start("-m", "actorlearner", name, *flags)

    def health(name: str, later_s: float = 0.0) -> Health:
        asked = address if name == "replay-server" else None
        return check([name], RunDirectory(tmp_path / name), asked, time.time() + later_s)[0]

    def healthy(name: str, doing: str) -> bool:
        found = health(name)
        return found.healthy and doing in found.why

    server = role("replay-server", "--port", str(free_port))
    wait_for(lambda: not health("replay-server").healthy, "the replay server to start")
    wait_for(lambda: healthy("replay-server", "serving"), "the replay server to serve")
    learner = role("learner", "--replay_address", address)
    evaluator = role("eval-actor", "--replay_address", address)
    wait_for(
        lambda: healthy("learner", "waiting for 200 transitions in each replay server"), "the learner to wait"
    )
    wait_for(lambda: healthy("eval-actor", "waiting for the next policy"), "the eval actor to wait")
    actor = role("collect-actor", "--replay_address", address, "--actor_index", "0")
    wait_for(lambda: healthy("collect-actor", "env step"), "env steps")
    wait_for(lambda: healthy("learner", "train step"), "train steps")

    # Without a learner, the rate limiter soon blocks inserts: the actor waits but is healthy.
    learner.freeze()
    wait_for(lambda: healthy("collect-actor", "waiting for replay to accept"), "the rate limiter")
    assert not health("learner", later_s=LONG_PATIENCE_S + 1).healthy
    # Without an actor, the learner gets no data: it waits but is healthy.
    actor.freeze()
    learner.thaw()
    wait_for(lambda: healthy("learner", "waiting for transitions"), "the learner to want data")
    assert not health("collect-actor", later_s=PATIENCE_S + 5).healthy
    actor.thaw()

    server.freeze()
    assert health("replay-server") == Health(
        "replay-server", False, f"{address} does not answer (deadline_exceeded)"
    )
    command = (sys.executable, "-m", "actorlearner", "health", "--run_dir", str(tmp_path / "replay-server"))
    completed = subprocess.run(
        [*command, "--role", "replay-server", "--replay_address", address],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (completed.returncode, completed.stdout.startswith("replay-server: NOT HEALTHY: ")) == (1, True), (
        completed
    )
    server.thaw()
    wait_for(lambda: healthy("replay-server", "serving"), "the replay server to serve again")

    for command in (learner, actor, evaluator, server):
        command.interrupt(signal.SIGTERM)
        assert command.finish(timeout_s=30) == 143, command.err
    for name in ("replay-server", "learner", "eval-actor", "collect-actor"):
        assert list(RunDirectory(tmp_path / name).heartbeats.iterdir()) == []
