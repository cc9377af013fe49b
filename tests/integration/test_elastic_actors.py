"""Collect actors join and leave at any time; the others continue at the same ratio of learning to acting."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actorlearner.config.schema import Config
from actorlearner.environments.specs import load_specs
from actorlearner.replay.layout import make_layout
from actorlearner.replay.rate_limit import plan_rate_limit
from tests.support.cluster import Cluster
from tests.support.processes import Command, marked_processes

pytestmark = pytest.mark.integration

_AFTERWARDS = 500
"""Train steps that need more transitions than are in replay when the others have gone."""


def test_actors_come_late_and_leave_and_die_and_the_rest_goes_on(
    start: Callable[..., Command], mark: str, tmp_path: Path, free_port: int
) -> None:
    settings = ("collect.actors=1", "learn.train_steps=1000000", "evaluate.interval=1000000")
    cluster = Cluster(start, tmp_path, f"localhost:{free_port}", 0.02, *settings)
    server, learner, first = cluster.replay_server(), cluster.learner(), cluster.collect_actor(0)
    staying = (learner, first)
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
    assert cluster.policies_back(0, 1, 2) == []
    account = cluster.account(killed=[dying])
    assert (account.lost, account.duplicated, account.unknown, account.torn) == (0, 0, 0, 0), account
    _check_ratio(cluster.config, cluster.records("replay"))


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
