"""A role that joins a server which was just restored, and still shows the run as long as it was then."""

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import reverb

from actorlearner.agents.dqn import DqnBuilder
from actorlearner.agents.experience import Experience
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.process.stop import Stop
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay import connection, item_size
from actorlearner.replay.connection import connect
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.identity import announce, identity_table
from actorlearner.replay.layout import make_layout
from tests.support.processes import wait_for
from tests.support.replay import SPECS

RUN = "0123456789ab"


@pytest.fixture
def client(small_config: Config, free_port: int) -> Iterator[reverb.Client]:
    """Of a server that serves the run as it was."""
    tables = [experience_table(small_config, make_layout(small_config, SPECS)), identity_table(RUN)]
    server = reverb.Server(tables, free_port)
    client = reverb.Client(f"localhost:{free_port}")
    announce(client, RUN, small_config)
    yield client
    server.stop()


def changed(config: Config, **keys: int) -> Config:
    return dataclasses.replace(config, learn=dataclasses.replace(config.learn, **keys))


def join(client: reverb.Client, config: Config, path: Path, stop: Stop) -> str:
    """Connects a role of this configuration; returns the run that it is in then."""
    directory = RunDirectory(path)
    directory.prepare(config, joins=True)
    layout = make_layout(config, SPECS)
    servers = connect([client.server_address], [0], layout, directory, config, stop)
    assert servers
    return servers[0].run_id


def test_a_role_waits_until_the_server_announces_more_train_steps(
    client: reverb.Client, small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_ANNOUNCE_S", 300.0)
    longer = changed(small_config, train_steps=small_config.learn.train_steps + 1)
    refused = threading.Event()
    joined: list[str] = []

    class Waiting(Stop):
        def wait(self, timeout_s: float) -> bool:
            refused.set()
            return super().wait(timeout_s)

    role = threading.Thread(target=lambda: joined.append(join(client, longer, tmp_path / "role", Waiting())))
    role.start()
    assert refused.wait(60)
    assert not joined
    announce(client, RUN, longer)
    wait_for(lambda: bool(joined), "the role to join")
    role.join()
    assert joined == [RUN]


def test_a_server_that_keeps_other_train_steps_is_refused(
    client: reverb.Client, small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_ANNOUNCE_S", 0.2)
    longer = changed(small_config, train_steps=small_config.learn.train_steps + 1)
    with pytest.raises(ConfigurationError, match=r"another configuration: learn\.train_steps: \d+ here"):
        join(client, longer, tmp_path / "role", Stop())


def test_any_other_difference_is_refused_at_once(
    client: reverb.Client, small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_ANNOUNCE_S", 1e9)
    other = changed(small_config, train_steps=77, batch_size=16)
    with pytest.raises(ConfigurationError, match=r"learn\.batch_size: 16 here"):
        join(client, other, tmp_path / "role", Stop())


def test_a_directory_of_another_run_is_refused(
    client: reverb.Client, small_config: Config, tmp_path: Path
) -> None:
    assert join(client, small_config, tmp_path, Stop()) == RUN
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text().replace(RUN, "another"))
    with pytest.raises(ConfigurationError, match=f"belongs to run another, but .* serves run {RUN}"):
        join(client, small_config, tmp_path, Stop())


def test_two_addresses_of_one_server_are_refused(
    client: reverb.Client, small_config: Config, tmp_path: Path
) -> None:
    port = client.server_address.rpartition(":")[2]
    addresses = (f"localhost:{port}", f"127.0.0.1:{port}")
    layout, directory = make_layout(small_config, SPECS), RunDirectory(tmp_path)
    directory.prepare(small_config, joins=True)
    with pytest.raises(ConfigurationError, match=f"{addresses[0]} and {addresses[1]} both serve run {RUN}"):
        connect(addresses, range(2), layout, directory, small_config, Stop())


def test_another_version_of_an_own_algorithm_is_refused(
    client: reverb.Client, small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It learned from single transitions when the run began."""
    monkeypatch.setattr(DqnBuilder, "experience", lambda builder, config: Experience(length=4, stride=2))
    with pytest.raises(ConfigurationError) as refused:
        join(client, small_config, tmp_path, Stop())
    assert refused.value.problems == (
        f"agent.name: {client.server_address} stores what another version of this algorithm learns from: it "
        "has no table sequences_every_2",
    )


def test_items_of_another_size_are_refused(
    client: reverb.Client, small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a run that another version of the program began."""
    there = item_size.MAX_ROWS
    monkeypatch.setattr(item_size, "MAX_ROWS", 3)
    with pytest.raises(ConfigurationError) as refused:
        join(client, small_config, tmp_path, Stop())
    message = str(refused.value)
    assert "environment.name: " in message
    assert "another version of this program" in message
    assert f"uint8[1, {there}, " in message
    assert "here uint8[1, 3, " in message
