"""The status of replay: the time for which it blocks, and servers that go away, return and are replaced."""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import reverb

from actorlearner.config.schema import Config
from actorlearner.errors import RunError
from actorlearner.process.stop import Stop
from actorlearner.replay.connection import ReplayServer, identity_table
from actorlearner.replay.experience_table import experience_table, start_server
from actorlearner.replay.layout import make_layout
from actorlearner.replay.monitor import BlockedFractions, BlockedTime, ReplayStatus, ReplayWatch
from tests.conftest import Eventually
from tests.support.ports import unused_port
from tests.support.processes import PATIENCE_S
from tests.support.replay import SPECS, Replay, numbered, sample_until_blocked, with_replay

Serve = Callable[[str, int], reverb.Server]


@pytest.fixture
def serve(small_config: Config) -> Iterator[Serve]:
    """Starts a server of a run on a port."""
    config = with_replay(small_config, layout="trajectory")
    servers = []

    def serve(run_id: str, port: int) -> reverb.Server:
        tables = [experience_table(config, make_layout(config, SPECS)), identity_table(run_id)]
        servers.append(start_server(tables, port))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()


@pytest.mark.timeout(900)
def test_status_while_a_server_goes_away_and_returns(
    serve: Serve, small_config: Config, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    layout = make_layout(with_replay(small_config, layout="trajectory"), SPECS)
    ports = [unused_port() for _ in range(2)]
    addresses = [f"localhost:{port}" for port in ports]
    _, second = [serve(run_id, port) for run_id, port in zip("ab", ports, strict=True)]
    for count, address in zip((8, 16), addresses, strict=True):
        Replay(reverb.Client(address), address, layout).fill(count)
    servers = [
        ReplayServer(address, reverb.Client(address), run_id)
        for address, run_id in zip(addresses, "ab", strict=True)
    ]
    stop = Stop()
    watch = ReplayWatch(servers, layout, stop)

    def has(size: int, least: int) -> bool:
        return watch.status(0) == ReplayStatus(size, size, 0) and min(watch.sizes(0).values()) == least

    def wait_for_message(text: str) -> None:
        message = f"the replay server {addresses[1]} {text}"
        eventually(lambda: caplog.messages and caplog.messages[-1] == message, PATIENCE_S)

    eventually(lambda: has(24, 8), PATIENCE_S)
    second.stop()
    wait_for_message("does not answer: training goes on with the transitions of the other 1 of 2")
    assert has(24, 8)
    second = serve("b", ports[1])
    wait_for_message("answers again: training goes on with the transitions of 2 of 2")
    eventually(lambda: has(8, 0), PATIENCE_S)
    assert len(caplog.messages) == 2

    second.stop()
    serve("c", ports[1])

    def replaced() -> bool:
        try:
            watch.status(0)
        except RunError as error:
            return str(error) == (
                f"the replay server {addresses[1]} has been replaced by one of run c; it served run b"
            )
        return False

    eventually(replaced, PATIENCE_S)
    stop.request()


@pytest.fixture
def replay(small_config: Config, free_port: int) -> Iterator[Replay]:
    """One update an env step, from one item on."""
    config = with_replay(small_config, updates_per_env_step=1.0, capacity=100_000)
    layout = make_layout(config, SPECS)
    server = start_server([experience_table(config, layout)], free_port)
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
