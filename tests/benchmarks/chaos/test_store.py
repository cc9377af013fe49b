"""Reads every transition from a real replay checkpoint; their account is correct."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import reverb
import tensorflow as tf

from actorlearner.config.schema import Config
from actorlearner.environments.environment import EnvSteps
from actorlearner.replay.checkpoints import ReplayCheckpoints, newest_checkpoint
from actorlearner.replay.connection import ReplayServer
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.item_size import MAX_ROWS
from actorlearner.replay.layout import make_layout
from actorlearner.variables.container import variable_tables
from benchmarks.chaos.account import Account, Writing, make_account
from benchmarks.chaos.numbered import Produced, observation
from benchmarks.chaos.store import read_items
from tests.support.ports import unused_port
from tests.support.replay import LONG_S, Replay, sample_until_blocked, with_replay
from tests.support.training import SPECS

IDENTITY = 2**47 + 5
STEPS = 2 * MAX_ROWS + 7
"""The last item of the packed layout is not full."""


class Store(Replay):
    """A replay server that can be saved and read completely."""

    checkpoints: ReplayCheckpoints

    def take(self, numbers: range) -> None:
        writer = self.layout.writer(self.client, 1)
        for number in numbers:
            writer.write(_env_step(number, last=number == numbers[-1]))
            assert writer.flush(LONG_S)
        assert writer.close(LONG_S)

    def account(self, steps: int) -> Account:
        assert self.checkpoints.save(ReplayServer(self.client, self.layout))
        checkpoint = newest_checkpoint(self.checkpoints.directory)
        assert checkpoint is not None
        parts = read_items(checkpoint[0], self.layout, unused_port())
        writing = Writing(self.layout.env_steps_per_item, shared=True, n_step=1)
        produced = [Produced(1, IDENTITY, times=np.arange(steps, dtype=np.float64))]
        return make_account(produced, parts, writing=writing, killed=(), losses=())


def _env_step(number: int, last: bool) -> EnvSteps:
    one = np.ones(1, np.bool_)
    return EnvSteps(
        observation=observation(IDENTITY, number, 1)[None],
        first=one & (number == 0),
        action=np.zeros(1, np.int64),
        reward=np.zeros(1, np.float32),
        discount=np.ones(1, np.float32),
        next_observation=observation(IDENTITY, number + 1, 1)[None],
        last=one & last,
        policy_train_step=np.full(1, -1),
        valid=one,
    )


@pytest.fixture(params=["packed", "trajectory"])
def store(small_config: Config, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """A server whose rate limiter soon blocks sampling, with other tables beside the experience table."""
    config = with_replay(
        small_config, layout=request.param, min_size=MAX_ROWS, updates_per_env_step=1.0, error_buffer=1_000.0
    )
    layout = make_layout(config, SPECS)
    checkpoints = ReplayCheckpoints(tmp_path / "replay", config, layout)
    port = unused_port()
    tables = [experience_table(config, layout), *variable_tables([tf.Variable([1.0])])]
    server = reverb.Server(tables, port, checkpoints.restoring_checkpointer())
    store = Store(reverb.Client(f"localhost:{port}"), f"localhost:{port}", layout)
    store.checkpoints = checkpoints
    yield store
    server.stop()


def test_every_transition_is_read_once(store: Store) -> None:
    store.take(range(STEPS))
    found = store.account(STEPS)
    assert (found.stored, found.duplicated, found.unknown, found.torn) == (STEPS, 0, 0, 0)
    assert found.lost + found.lost_at_end == 0


def test_every_transition_is_read_although_the_limiter_blocks_sampling(store: Store) -> None:
    store.take(range(STEPS))
    held = store.status().size // store.layout.env_steps_per_item
    assert sample_until_blocked(store) > held
    assert store.account(STEPS).stored == STEPS


def test_planted_faults_are_found(store: Store) -> None:
    store.take(range(10))
    store.take(range(5, 12))
    store.take(range(14, 300))
    found = store.account(300)
    assert (found.duplicated, found.lost, found.lost_at_end) == (5, 2, 0)


def test_an_empty_replay(store: Store) -> None:
    assert store.account(0).stored == 0
