"""Real runs with a deliberate bottleneck, and the reports of local mode and `status`.

The run with slow environments is in test_resume.py.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import unused_port
from tests.support.processes import REPOSITORY, TINY_RUN, Command, records, status_of, wait_for
from tests.support.slow_link import slow_link

pytestmark = [pytest.mark.integration, pytest.mark.long]

_PENDULUM = str(REPOSITORY / "configs" / "td3_pendulum.yaml")
Start = Callable[..., Command]


def _local(start: Start, *settings: str) -> Command:
    flags = ("--config", _PENDULUM, "--run_dir", "run", "--set", *TINY_RUN, *settings)
    return start("-m", "actorlearner", "local", *flags)


def _told(status: dict[str, Any]) -> list[str]:
    return [bottleneck["name"] for bottleneck in status["bottlenecks"]]


def test_large_networks(start: Start, tmp_path: Path) -> None:
    """A train step takes much longer than eight env steps of a pendulum."""
    large = ("agent.critic_joint_layers=[512,512]", "learn.batch_size=256", "learn.train_steps_per_call=2")
    command = _local(start, *large, "learn.train_steps=200", "evaluate.interval=100000")
    assert command.finish() == 0, command.err
    assert "bottleneck     training: the learner trains " in command.out
    status = status_of(tmp_path / "run")
    assert _told(status) == ["training"], status["waits"]
    assert status["waits"]["actors"]["rate limiter"] > 0.5


def test_a_slow_network_to_the_learner(start: Start, tmp_path: Path) -> None:
    """A batch takes 50 ms to arrive, and a train step much less; nobody waits for the rate limiter."""
    port = unused_port()

    def role(name: str, folder: str, *more: str) -> Command:
        settings = ("--set", *TINY_RUN, "replay.updates_per_env_step=null", "learn.train_steps=1000000")
        return start(
            *("-m", "actorlearner", name, "--config", _PENDULUM, "--run_dir", folder, *more, *settings)
        )

    server = role("replay-server", "server", "--port", str(port))
    actor = role("collect-actor", "actor", "--replay_address", f"127.0.0.1:{port}", "--actor_index", "0")
    with slow_link(port, bytes_per_s=50_000) as address:
        learner = role("learner", "learner", "--replay_address", address)
        metrics = tmp_path / "learner" / "metrics" / "learner.jsonl"
        wait_for(lambda: len(records(metrics)) >= 1, "training")
        actor.freeze()  # Replay has enough transitions; the actor would keep a core busy.
        wait_for(lambda: len(records(metrics)) >= 5, "more train steps")
        status = status_of(tmp_path / "learner")
        assert _told(status) == ["sampling"], status["waits"]
        assert status["waits"]["learner"]["sampling"] > 0.5
        actor.thaw()
        for command in (learner, actor, server):
            command.interrupt()
            assert command.finish() == 130, command.err
