"""The status that a replay server returns to any client."""

import dataclasses
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import reverb

from actorlearner.agents.make import make_agent
from actorlearner.agents.ppo import PpoConfig
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.inspect.status import server_status
from actorlearner.inspect.status.server_status import ServerStatusReader
from actorlearner.inspect.status.view import rendered, server_rows
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.identity import announce, identity_table
from actorlearner.replay.layout import make_layout
from actorlearner.replay.reverb_calls import NoAnswerError
from actorlearner.variables.container import (
    EvaluationRequest,
    PolicyVariables,
    VariableContainer,
    variable_tables,
)
from tests.conftest import Eventually
from tests.support.replay import SPECS as REPLAY_SPECS
from tests.support.replay import Replay, numbered, with_replay
from tests.support.training import DQN, SPECS


@pytest.fixture(name="config", params=["packed", "trajectory"])
def _config(small_config: Config, request: pytest.FixtureRequest) -> Config:
    return with_replay(small_config, layout=request.param, capacity=10_000, updates_per_env_step=1.0)


@pytest.fixture(name="values")
def _values() -> list[np.ndarray]:
    return [variable.numpy() for variable in make_agent(Config(agent=DQN), SPECS).policy_variables]


@pytest.fixture(name="replay")
def _replay(config: Config, free_port: int) -> Iterator[Replay]:
    """A replay server of run `abc`."""
    yield from _serve(config, free_port)


def _serve(config: Config, free_port: int) -> Iterator[Replay]:
    layout = make_layout(config, REPLAY_SPECS)
    variables = make_agent(Config(agent=DQN), SPECS).policy_variables
    tables = [experience_table(config, layout), *variable_tables(variables), identity_table("abc")]
    server = reverb.Server(tables, free_port)
    address = f"localhost:{free_port}"
    replay = Replay(reverb.Client(address), address, layout)
    announce(replay.client, "abc", config)
    yield replay
    server.stop()


def test_the_status_has_replay_variables_and_rates(
    replay: Replay, config: Config, values: list[np.ndarray], eventually: Eventually
) -> None:
    reader = ServerStatusReader(replay.address)
    first = reader.read()
    assert (first.run_id, first.train_step, first.versions) == ("abc", None, 0)
    assert (first.env_steps_per_s, first.replay["inserts_barred_fraction"]) == (None, None)
    shown = rendered(server_rows(first), 80).plain
    assert "none yet" in shown
    assert "bottleneck" not in shown

    container = VariableContainer(replay.client)
    container.push(PolicyVariables(30, values, generation=2))
    container.push_evaluation(EvaluationRequest(PolicyVariables(20, values), env_steps=5))
    # Writes more than the rate limiter accepts; in the packed layout, writing does not wait for it.
    packed = config.replay.layout == "packed"
    writer = replay.layout.writer(replay.client, 8)
    for number in range(0, 20 * 64 if packed else 8, 8):
        writer.write(numbered(np.arange(number, number + 8)))
    if packed:
        eventually(lambda: replay.status().inserts_blocked_s > 0.5)
    else:
        eventually(lambda: replay.status().inserts == 8)
    second = reader.read()
    assert (second.train_step, second.generation, second.versions) == (30, 2, 1)
    assert second.variables_new
    assert second.evaluations_waiting == 1
    assert second.replay["size"] == second.replay["inserts"] == replay.status().inserts > 0
    assert second.replay["capacity"] == 10_000
    assert second.replay["samples_per_insert_wanted"] == config.learn.batch_size
    assert second.env_steps_per_s > 0
    assert second.train_steps_per_s == 0
    assert second.held_back_by == ("learner" if packed else None)
    shown = rendered(server_rows(second), 80).plain
    assert "train step 30 of 100 (30 %)" in shown
    assert ("the learner's side" in shown) == packed
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines())

    # After the last train step, nothing is held back any more.
    container.push(PolicyVariables(100, values, generation=2))
    assert reader.read().held_back_by is None


def test_a_resume_with_more_train_steps_is_noticed(
    replay: Replay, config: Config, values: list[np.ndarray]
) -> None:
    reader = ServerStatusReader(replay.address)
    assert reader.read().train_steps == 100
    learn = dataclasses.replace(config.learn, train_steps=500)
    announce(replay.client, "abc", dataclasses.replace(config, learn=learn))
    VariableContainer(replay.client).push(PolicyVariables(100, values))
    assert reader.read().train_steps == 500


def test_a_policy_that_does_not_arrive_is_read_again(
    replay: Replay, values: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ServerStatusReader(replay.address)
    VariableContainer(replay.client).push(PolicyVariables(30, values))
    with monkeypatch.context() as patch:
        patch.setattr(VariableContainer, "pull", _unanswered)
        with pytest.raises(RunError, match="does not answer"):
            reader.read()
    assert reader.read().train_step == 30


def _unanswered(container: VariableContainer) -> PolicyVariables:
    raise NoAnswerError


@pytest.fixture(name="queue")
def _queue(small_config: Config, free_port: int) -> Iterator[Replay]:
    agent = PpoConfig(env_steps_per_iteration=32, fragment_length=8)
    yield from _serve(dataclasses.replace(small_config, agent=agent), free_port)


def test_no_bottleneck_is_shown_for_experience_that_is_consumed_once(queue: Replay) -> None:
    reader = ServerStatusReader(queue.address)
    reader.read()
    status = reader.read()
    assert (status.replay["capacity"], status.held_back_by) == (None, None)
    shown = rendered(server_rows(status), 80).plain
    assert "transitions (" not in shown
    assert "no limit" not in shown
    assert "bottleneck" not in shown


def test_a_server_that_accepts_connections_but_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_status, "ANSWER_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(RunError, match=f"{address} does not answer within 1 s"):
            ServerStatusReader(address)


def test_a_server_that_is_not_there_is_given_up(free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_status, "ANSWER_S", 1)
    with pytest.raises(RunError, match="does not answer"):
        ServerStatusReader(f"localhost:{free_port}")


def test_another_server_of_reverb_is_refused(free_port: int) -> None:
    table: Any = reverb.Table.queue("queue", 10)
    server = reverb.Server([table], port=free_port)
    with pytest.raises(ConfigurationError, match="not a replay server of a run"):
        ServerStatusReader(f"localhost:{free_port}")
    server.stop()
