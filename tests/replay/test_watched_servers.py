"""The status of several servers: they go away, return, and are replaced."""

from collections.abc import Callable, Iterator

import pytest
import reverb

from actorlearner.config.schema import Config
from actorlearner.errors import RunError
from actorlearner.process.stop import Stop
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.identity import identity_table
from actorlearner.replay.layout import make_layout
from actorlearner.replay.status import ReplayStatus
from actorlearner.replay.watched_servers import WatchedServers
from tests.conftest import Eventually
from tests.support.ports import unused_port
from tests.support.processes import PATIENCE_S
from tests.support.replay import SPECS, Replay, with_replay

Serve = Callable[[str, int], reverb.Server]


@pytest.fixture
def serve(small_config: Config) -> Iterator[Serve]:
    """Starts a server of a run on a port."""
    config = with_replay(small_config, layout="trajectory")
    servers = []

    def serve(run_id: str, port: int) -> reverb.Server:
        tables = [experience_table(config, make_layout(config, SPECS)), identity_table(run_id)]
        servers.append(reverb.Server(tables, port))
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
        ReplayServer(reverb.Client(address), layout, run_id)
        for address, run_id in zip(addresses, "ab", strict=True)
    ]
    stop = Stop()
    watched = WatchedServers(servers, stop)

    def has(size: int, least: int) -> bool:
        return watched.status(0) == ReplayStatus(size, size, 0) and min(watched.sizes(0).values()) == least

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
            watched.status(0)
        except RunError as error:
            return str(error) == (
                f"the replay server {addresses[1]} has been replaced by one of run c; it served run b"
            )
        return False

    eventually(replaced, PATIENCE_S)
    stop.request()
