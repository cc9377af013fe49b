"""The fractions of the time between two polls in which the rate limiter blocked inserts or sampling."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
import reverb

from actorlearner.config.schema import Config
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.layout import make_layout
from actorlearner.replay.status import BlockedFractions, BlockedTime, ReplayStatus
from tests.conftest import Eventually
from tests.support.replay import (
    SPECS,
    Replay,
    numbered,
    sample_until_blocked,
    sample_until_inserted,
    with_replay,
)


@pytest.fixture
def replay(small_config: Config, free_port: int) -> Iterator[Replay]:
    """One update an env step, from one item on."""
    config = with_replay(small_config, updates_per_env_step=1.0, capacity=100_000)
    layout = make_layout(config, SPECS)
    server = reverb.Server([experience_table(config, layout)], free_port)
    address = f"localhost:{free_port}"
    yield Replay(reverb.Client(address), address, layout)
    server.stop()


def test_only_the_side_that_waits_is_blocked(replay: Replay, eventually: Eventually) -> None:
    writer = replay.layout.writer(replay.client, 8)
    written = 40 * replay.layout.env_steps_per_item
    for first in range(0, written, 8):  # More than the learner, who samples nothing, has sampled for.
        writer.write(numbered(np.arange(first, first + 8)))
    eventually(lambda: replay.status().inserts_blocked_s > 0.5)
    status = replay.status()
    assert status.inserts < written
    assert status.sampling_blocked_s == 0.0

    sample_until_inserted(replay, written)
    sample_until_blocked(replay)
    eventually(lambda: replay.status().sampling_blocked_s > 0.1)
    assert replay.status().inserts == written
    assert writer.close(10)


def test_fractions_are_of_the_time_between_two_polls() -> None:
    now = [0.0]
    blocked = BlockedTime(lambda: now[0])
    status = ReplayStatus(1, 1, 1, inserts_blocked_s=7.0, sampling_blocked_s=1.0)
    assert blocked.update(status) is None
    now[0] = 4.0
    status = dataclasses.replace(status, inserts_blocked_s=9.0, sampling_blocked_s=2.0)
    assert blocked.update(status) == BlockedFractions(0.5, 0.25)
    now[0] = 5.0  # Its counters may be a little ahead of our clock.
    assert blocked.update(dataclasses.replace(status, inserts_blocked_s=10.2)) == BlockedFractions(1.0, 0.0)


def test_a_restarted_server_counts_from_zero() -> None:
    blocked = BlockedTime()
    blocked.update(ReplayStatus(1, 1, 1, inserts_blocked_s=7.0))
    assert blocked.update(ReplayStatus(1, 1, 1, inserts_blocked_s=0.1)) is None
