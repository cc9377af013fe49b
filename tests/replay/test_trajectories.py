"""The writer of the trajectory layout, on a real server whose rate limiter blocks it."""

from collections.abc import Iterator

import numpy as np
import pytest
import reverb

from actorlearner.agents.experience import Experience
from actorlearner.config.schema import Config
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.layout import make_layout
from actorlearner.replay.rate_limit import plan_rate_limit
from actorlearner.replay.reverb_calls import within
from tests.support.replay import LONG_S, SHORT_S, SPECS, Replay, numbered, sample_until_inserted, with_replay


@pytest.fixture
def config(small_config: Config) -> Config:
    """One update an env step, from one item on."""
    return with_replay(
        small_config, layout="trajectory", updates_per_env_step=1.0, capacity=100_000, min_size=1
    )


@pytest.fixture
def replay(config: Config, free_port: int) -> Iterator[Replay]:
    layout = make_layout(config, SPECS)
    server = reverb.Server([experience_table(config, layout)], free_port)
    address = f"localhost:{free_port}"
    yield Replay(reverb.Client(address), address, layout)
    server.stop()


def test_the_end_of_an_episode_waits_for_the_rate_limiter_with_a_deadline(
    replay: Replay, config: Config
) -> None:
    writer = replay.layout.writer(replay.client, environments=1)
    limit = plan_rate_limit(config, Experience(), replay.layout.env_steps_per_item)
    assert limit.samples_per_insert is not None
    accepted = round(limit.min_size + limit.error_buffer / limit.samples_per_insert)
    for number in range(accepted):
        writer.write(numbered(np.array([number])))  # An episode of one env step.
        assert writer.flush(LONG_S)
    writer.write(numbered(np.array([accepted])))
    assert not writer.flush(SHORT_S)
    assert not within(LONG_S, lambda: writer.flush(0.0))  # Whose milliseconds would be no deadline at all.
    assert replay.status().inserts == accepted
    sample_until_inserted(replay, accepted + 1)
    assert writer.flush(LONG_S)
    assert writer.close(LONG_S)
