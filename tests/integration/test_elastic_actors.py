"""Roles started by hand: their health, and collect actors that join and leave while the others continue."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actorlearner.config.schema import Config
from actorlearner.environments.specs import load_specs
from actorlearner.process.health import Health, check
from actorlearner.process.heartbeat import LONG_PATIENCE_S, PATIENCE_S
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.layout import make_layout
from actorlearner.replay.rate_limit import plan_rate_limit
from tests.support.cluster import Cluster
from tests.support.processes import Command, marked_processes, wait_for

pytestmark = pytest.mark.integration

_AFTERWARDS = 500
"""Train steps that need more transitions than are in replay when the others have gone."""

_DIRECTORIES = {
    "replay-server": "replay", "learner": "learner", "eval-actor": "eval", "collect-actor": "collect-0"
}  # fmt: skip


def test_roles_report_their_health_while_actors_come_and_go(
    start: Callable[..., Command], mark: str, tmp_path: Path, free_port: int
) -> None:
    settings = ("collect.actors=1", "learn.train_steps=1000000", "evaluate.interval=1000000")
    # While it writes a checkpoint, a replay server that does not answer is healthy.
    settings += ("replay.checkpoint_interval_s=null",)
    cluster = Cluster(start, tmp_path, f"localhost:{free_port}", 0.02, *settings)
    server, *staying = _start_and_check_health(cluster, tmp_path, f"localhost:{free_port}")
    cluster.wait_for("collect-0", "policy_train_step", 1, *staying)

    leaving, dying = cluster.collect_actor(1), cluster.collect_actor(2)
    for index, late in ((1, leaving), (2, dying)):
        cluster.wait_for(f"collect-{index}", "env_steps", 200, late, *staying)
        # Replay was filled long ago: it need not act randomly.
        assert cluster.records(f"collect-{index}")[0]["policy_train_step"] >= 0
    leaving.interrupt(signal.SIGTERM)
    dying.process.kill()
    assert leaving.finish() == 143, leaving.err
    dying.finish()
    trained = cluster.last("learner", "train_step")
    cluster.wait_for("learner", "train_step", trained + _AFTERWARDS, *staying)

    for command in (*staying, server):
        command.interrupt(signal.SIGTERM)
        assert command.finish() == 143, command.err
    assert marked_processes(mark) == []
    for directory in _DIRECTORIES.values():
        assert list(RunDirectory(tmp_path / directory).heartbeats.iterdir()) == []
    assert cluster.policies_back(0, 1, 2) == []
    account = cluster.account(killed=[dying])
    assert (account.lost, account.duplicated, account.unknown, account.torn) == (0, 0, 0, 0), account
    _check_ratio(cluster.config, cluster.records("replay"))


def _start_and_check_health(cluster: Cluster, folder: Path, address: str) -> list[Command]:
    """Starts the replay server, learner, eval actor and collect actor; each is healthy unless it hangs."""

    def health(role: str, later_s: float = 0.0) -> Health:
        asked = address if role == "replay-server" else None
        directory = RunDirectory(folder / _DIRECTORIES[role])
        return check([role], directory, asked, time.time() + later_s)[0]

    def wait_until_healthy(role: str, doing: str) -> None:
        def healthy() -> bool:
            found = health(role)
            return found.healthy and doing in found.why

        wait_for(healthy, f"the {role} to report: {doing}")

    server = cluster.replay_server()
    wait_for(lambda: not health("replay-server").healthy, "the replay server to start")
    wait_until_healthy("replay-server", "serving")
    learner, evaluator = cluster.learner(), cluster.eval_actor()
    wait_until_healthy("learner", "waiting for 200 transitions in each replay server")
    wait_until_healthy("eval-actor", "waiting for the next policy")
    actor = cluster.collect_actor(0)
    wait_until_healthy("collect-actor", "env step")
    wait_until_healthy("learner", "train step")

    # Without a learner, the rate limiter soon blocks inserts: the actor waits but is healthy.
    learner.freeze()
    wait_until_healthy("collect-actor", "waiting for replay to accept")
    assert not health("learner", later_s=LONG_PATIENCE_S + 1).healthy
    # Without an actor, the learner gets no data: it waits but is healthy.
    actor.freeze()
    learner.thaw()
    wait_until_healthy("learner", "waiting for transitions")
    assert not health("collect-actor", later_s=PATIENCE_S + 5).healthy
    actor.thaw()

    server.freeze()
    reason = f"{address} does not answer (deadline_exceeded)"
    assert health("replay-server") == Health("replay-server", False, reason)
    command = (sys.executable, "-m", "actorlearner", "health", "--run_dir", str(folder / "replay"))
    completed = subprocess.run(
        [*command, "--role", "replay-server", "--replay_address", address],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert completed.returncode == 1
    assert completed.stdout.startswith("replay-server: NOT HEALTHY: ")
    server.thaw()
    wait_until_healthy("replay-server", "serving")
    return [server, learner, evaluator, actor]


def _check_ratio(config: Config, records: list[dict[str, Any]]) -> None:
    """Checks that the ratio of learning to acting stayed within the rate limiter's bounds."""
    layout = make_layout(config, load_specs(config.environment))
    size = layout.env_steps_per_item
    limit = plan_rate_limit(config, layout.experience, size)
    assert limit.samples_per_insert is not None
    checked = 0
    for record in records:
        inserts, samples = record["inserts"] / size, record["samples"] / size
        if samples:
            ahead = (inserts - limit.min_size) * limit.samples_per_insert - samples
            assert abs(ahead) <= limit.error_buffer, record
            checked += 1
    assert checked
