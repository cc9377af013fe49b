"""Transitions through a real replay server: written, kept, limited in rate and sampled."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import reverb
import tree

from actorlearner.agents.experience import Experience, StoredTransition
from actorlearner.config.schema import Config
from actorlearner.replay.checks import replay_problems
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.item_size import MAX_ROWS
from actorlearner.replay.layout import make_layout
from actorlearner.replay.rate_limit import plan_rate_limit
from actorlearner.replay.status import ReplayStatus
from tests.support.replay import (
    LONG_S,
    SHORT_S,
    SPECS,
    Replay,
    numbered,
    sample_until_blocked,
    stored,
    with_replay,
)

LAYOUTS = ["packed", "trajectory"]

Serve = Callable[..., Replay]


@pytest.fixture
def serve(small_config: Config, free_port: int) -> Iterator[Serve]:
    servers = []

    def serve(**replay: Any) -> Replay:
        config = with_replay(small_config, **replay)
        layout = make_layout(config, SPECS)
        servers.append(reverb.Server([experience_table(config, layout)], free_port))
        address = f"localhost:{free_port}"
        return Replay(reverb.Client(address), address, layout)

    yield serve
    for server in servers:
        server.stop()


@pytest.mark.parametrize(("environments", "count"), [(1, 43), (3, 45), (8, 48), (13, 39)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_transition_arrives_once(serve: Serve, environments: int, count: int, layout: str) -> None:
    replay = serve(layout=layout)
    writer = replay.write(count, environments)
    assert writer.flush(LONG_S, pending_items=0)
    items = count // replay.layout.env_steps_per_item
    assert replay.status().size == items * replay.layout.env_steps_per_item
    assert writer.close(LONG_S)  # Writes what did not fill an item.
    assert replay.numbers() == list(range(count))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_two_writers_do_not_mix_their_items(serve: Serve, layout: str) -> None:
    replay = serve(layout=layout)
    writers = [replay.layout.writer(replay.client, 3) for _ in range(2)]
    for start in range(0, 24, 3):
        for i, writer in enumerate(writers):
            writer.write(numbered(np.arange(start, start + 3) + 100 * i))
    assert all(writer.close(LONG_S) for writer in writers)
    assert replay.numbers() == [*range(24), *range(100, 124)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_written_arrays_may_be_overwritten_by_their_owner(serve: Serve, layout: str) -> None:
    replay = serve(layout=layout)
    writer = replay.layout.writer(replay.client, 8)
    steps = numbered(np.arange(8))
    steps = tree.map_structure(np.array, steps)
    writer.write(steps)
    for leaf in tree.flatten(steps):
        leaf.fill(77)
    assert writer.close(LONG_S)
    assert replay.numbers() == list(range(8))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_beyond_the_capacity_the_oldest_are_removed(serve: Serve, layout: str) -> None:
    capacity = 3 * MAX_ROWS
    replay = serve(capacity=capacity, layout=layout)
    replay.fill(5 * capacity)
    assert replay.status().size == capacity
    assert replay.numbers() == list(range(4 * capacity, 5 * capacity))


def test_status_counts_transitions(serve: Serve) -> None:
    item = MAX_ROWS
    replay = serve(capacity=5 * item)
    assert replay.status() == ReplayStatus(size=0, inserts=0, samples=0)
    assert replay.status().samples_per_insert == 0.0
    replay.fill(8 * item)
    assert replay.status() == ReplayStatus(size=5 * item, inserts=8 * item, samples=0)
    assert len(list(replay.client.sample(replay.layout.table, 3))) == 3
    status = replay.status()
    assert status == ReplayStatus(size=5 * item, inserts=8 * item, samples=3 * item)
    assert status.samples_per_insert == 3 / 8


def test_without_updates_per_env_step_only_the_minimum_size_blocks_sampling(serve: Serve) -> None:
    replay = serve(min_size=2 * MAX_ROWS + 1)
    replay.fill(2 * MAX_ROWS)
    assert sample_until_blocked(replay) == 0
    replay.fill(MAX_ROWS)
    assert len(list(replay.client.sample(replay.layout.table, 500))) == 500
    replay.fill(50 * MAX_ROWS)
    assert replay.status().inserts == 53 * MAX_ROWS


RATIO = {
    "updates_per_env_step": 0.5,
    "min_size": 3 * MAX_ROWS,
    "error_buffer": 2.0 * MAX_ROWS,
}
"""With batches of 4: SPI 2, at least 3 items, and 2 items (4 samples) by which either side may be ahead."""


@pytest.mark.parametrize(
    ("batch_size", "actors", "replay"),
    [
        (64, 2, {"updates_per_env_step": 0.005, "min_size": 1_500}),
        (100, 8, {"updates_per_env_step": 0.001, "min_size": 10_000}),
        (128, 1, {"updates_per_env_step": 0.7, "min_size": 1_000, "error_buffer": 32.0}),
    ],
)
def test_reverb_accepts_the_smallest_buffers(
    small_config: Config, batch_size: int, actors: int, replay: dict[str, Any]
) -> None:
    config = dataclasses.replace(
        with_replay(small_config, capacity=100_000, **replay),
        learn=dataclasses.replace(small_config.learn, batch_size=batch_size),
        collect=dataclasses.replace(small_config.collect, actors=actors),
    )
    assert list(replay_problems(config)) == []
    experience_table(config, make_layout(config, SPECS))  # Reverb would raise a ValueError.


def test_inserts_wait_for_samples_at_the_planned_bound(
    serve: Serve, small_config: Config, eventually: Callable[..., None]
) -> None:
    replay = serve(**RATIO)
    limit = plan_rate_limit(with_replay(small_config, **RATIO), Experience(), MAX_ROWS)
    assert limit.samples_per_insert == 2
    most = round(limit.min_size + limit.error_buffer / limit.samples_per_insert)
    writer = replay.layout.writer(replay.client, 20 * MAX_ROWS)
    writer.write(numbered(np.arange(20 * MAX_ROWS)))
    # More items than may be unconfirmed are blocked: `flush` returns False and does not hang.
    eventually(lambda: replay.status().inserts >= most * MAX_ROWS)
    assert not writer.flush(SHORT_S)
    assert replay.status().inserts == most * MAX_ROWS
    for sampled in (2, 4, 6):
        assert len(list(replay.client.sample(replay.layout.table, 2))) == 2
        expected = (most + sampled // 2) * MAX_ROWS
        eventually(lambda expected=expected: replay.status().inserts >= expected)
        assert not writer.flush(SHORT_S)
        assert replay.status().inserts == expected
    assert not writer.close(SHORT_S)


def test_samples_wait_for_inserts_at_the_planned_bound(serve: Serve, small_config: Config) -> None:
    replay = serve(**RATIO)
    limit = plan_rate_limit(with_replay(small_config, **RATIO), Experience(), MAX_ROWS)
    replay.fill((limit.min_size - 1) * MAX_ROWS)
    assert sample_until_blocked(replay) == 0
    replay.fill(MAX_ROWS)
    assert sample_until_blocked(replay) == limit.error_buffer
    replay.fill(MAX_ROWS)
    assert sample_until_blocked(replay) == limit.samples_per_insert
    assert replay.status().inserts == (limit.min_size + 1) * MAX_ROWS


def test_a_blocked_writer_loses_nothing(serve: Serve, eventually: Callable[..., None]) -> None:
    replay = serve(**RATIO)
    count = 10 * MAX_ROWS
    writer = replay.layout.writer(replay.client, count)
    writer.write(numbered(np.arange(count)))
    held_back = 5
    eventually(lambda: replay.status().inserts >= count - held_back * MAX_ROWS)
    assert not writer.flush(SHORT_S, pending_items=0)
    assert replay.status().inserts == count - held_back * MAX_ROWS
    list(replay.client.sample(replay.layout.table, 2 * held_back))
    assert writer.close(LONG_S)
    assert replay.status() == ReplayStatus(size=count, inserts=count, samples=10 * MAX_ROWS)


def batches_of(replay: Replay, batch_size: int, per_replica: int, elements: int) -> list[StoredTransition]:
    dataset = experience_dataset([replay.address], replay.layout, batch_size, per_replica)
    decoded = dataset.map(lambda batch, _: replay.layout.decode(batch))
    return list(decoded.take(elements).as_numpy_iterator())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("per_replica", [16, 8, 4])
def test_elements_are_batches_for_one_replica(serve: Serve, per_replica: int, layout: str) -> None:
    replay = serve(layout=layout)
    replay.fill(240)
    for decoded in batches_of(replay, 16, per_replica, 5):
        number = decoded.reward.astype(np.int64)
        assert number.shape == (per_replica,)
        # All parts of a row are still those of one transition.
        expected = stored(numbered(number))
        if layout == "trajectory":
            expected = expected._replace(policy_train_step=np.full(per_replica, -1))
        tree.map_structure(np.testing.assert_array_equal, decoded, expected)
        for leaf, other in zip(tree.flatten(decoded), tree.flatten(expected), strict=True):
            assert leaf.dtype == other.dtype


@pytest.mark.parametrize("per_replica", [32, 16])
def test_each_batch_has_one_row_of_each_item(serve: Serve, per_replica: int) -> None:
    replay = serve(capacity=16_000)
    replay.fill(16_000)
    elements = [
        decoded.reward.astype(int)
        for decoded in batches_of(replay, 32, per_replica, MAX_ROWS * 32 // per_replica)
    ]
    batches = np.reshape(elements, (MAX_ROWS, 32))
    items = batches // MAX_ROWS
    np.testing.assert_array_equal(items, np.broadcast_to(items[:1], items.shape))
    rows = np.sort(batches % MAX_ROWS, axis=0)
    np.testing.assert_array_equal(rows, np.broadcast_to(np.arange(MAX_ROWS)[:, None], rows.shape))
    # Not the same row of each: that would tie a batch to a few env steps of each environment.
    assert all(len(set(batch % MAX_ROWS)) > 1 for batch in batches)


@pytest.mark.parametrize(("layout", "batches"), [("packed", 2_000), ("trajectory", 200)])
def test_every_transition_is_equally_likely(serve: Serve, layout: str, batches: int) -> None:
    """A chi-square test at six standard deviations, with a last item that is not full.

    It finds one transition that is never sampled.
    """
    replay = serve(layout=layout)
    count, batch_size = 43, 100
    assert replay.write(count, environments=1).close(LONG_S)
    times = np.zeros(count)
    for decoded in batches_of(replay, batch_size, batch_size, batches):
        times += np.bincount(decoded.reward.astype(int), minlength=count)
    expected = batches * batch_size / count
    chi_square = ((times - expected) ** 2 / expected).sum()
    # All rows of an item are dealt out together, so there are that many fewer independent draws.
    assert chi_square / replay.layout.env_steps_per_item < chi_square_bound(count - 1, deviations=6)


def chi_square_bound(degrees: int, deviations: float) -> float:
    """What chi-square exceeds as rarely as a normal variable so many deviations.

    By the approximation of Wilson and Hilferty, "The distribution of chi-square", 1931.
    """
    spread = 2 / (9 * degrees)
    return float(degrees * (1 - spread + deviations * np.sqrt(spread)) ** 3)
