"""Transitions through a real replay server: written, kept, limited in rate and sampled."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import reverb
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.config.schema import Config
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import StoredTransition, TransitionLayout
from actorlearner.replay.rate_limit import ROWS_PER_ITEM, plan_rate_limit
from actorlearner.replay.status import ReplayStatus, replay_status
from actorlearner.replay.tables import EXPERIENCE_TABLE, experience_table, start_server
from actorlearner.replay.writer import TransitionWriter

SHORT_S = 0.3
"""How long something that must not happen is given to happen."""

LONG_S = 30.0
TIMEOUT_S = 10

OBSERVATION = {
    "vector": tf.TensorSpec([3], tf.float32),
    "image": tensor_spec.BoundedTensorSpec([2, 2, 1], tf.uint8, 0, 255),
}
SPECS = EnvironmentSpecs(
    OBSERVATION,
    tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0),
    time_step.time_step_spec(OBSERVATION),
)
LAYOUT = TransitionLayout(SPECS)


def numbered(numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Rows of transitions that carry their number in every part."""
    number = np.asarray(numbers, np.float32)
    pixel = (np.asarray(numbers) % 255).astype(np.uint8)[:, None, None, None]
    observation = {
        "vector": np.stack([number, number + 0.25, number + 0.5], axis=1),
        "image": np.broadcast_to(pixel, (len(number), 2, 2, 1)),
    }
    return LAYOUT.pack(
        StoredTransition(
            observation=observation,
            action=np.stack([number, -number], axis=1),
            reward=number,
            discount=np.where(number % 7 == 0, 0.0, 1.0).astype(np.float32),
            next_observation={"vector": observation["vector"] + 1.0, "image": observation["image"] + 1},
            policy_train_step=number.astype(np.int64) // 10,
        )
    )


@dataclasses.dataclass
class Replay:
    """A replay server with shorthands to write and to look into its experience table."""

    client: reverb.Client
    address: str

    def write(self, count: int, environments: int = 8, first: int = 0) -> TransitionWriter:
        writer = TransitionWriter(self.client, LAYOUT)
        for start in range(first, first + count, environments):
            writer.write(numbered(np.arange(start, start + environments)))
            assert writer.flush(LONG_S)
        return writer

    def fill(self, count: int) -> None:
        assert self.write(count).close(LONG_S)

    def status(self) -> ReplayStatus:
        return replay_status(self.client, TIMEOUT_S)

    def items(self) -> dict[int, Any]:
        """The rows of each item in the table, sampled until all of them were seen."""
        size = self.status().size // ROWS_PER_ITEM
        items: dict[int, Any] = {}
        while len(items) < size:
            for sample in self.client.sample(
                EXPERIENCE_TABLE, 100, emit_timesteps=False, unpack_as_table_signature=True
            ):
                items[sample.info.key] = {dtype: rows[0] for dtype, rows in sample.data.items()}
        return items

    def numbers(self) -> list[int]:
        """The numbers of the transitions in the table, after checking each as a whole."""
        numbers = []
        for rows in self.items().values():
            transition, policy_train_step = LAYOUT.unpack(rows)
            found = transition.next_time_step.reward.numpy().astype(int)
            for dtype, block in numbered(found).items():
                np.testing.assert_array_equal(rows[dtype], block)
            np.testing.assert_array_equal(policy_train_step, found // 10)
            numbers += found.tolist()
        return sorted(numbers)

    def sample_until_barred(self) -> int:
        """Samples items until the rate limiter bars it for a while."""
        dataset = reverb.TrajectoryDataset(
            self.address,
            EXPERIENCE_TABLE,
            dtypes={dtype: spec.dtype for dtype, spec in LAYOUT.signature.items()},
            shapes={dtype: spec.shape for dtype, spec in LAYOUT.signature.items()},
            max_in_flight_samples_per_worker=1,
            num_workers_per_iterator=1,
            rate_limiter_timeout_ms=round(SHORT_S * 1000),
        )
        return sum(1 for _ in dataset)


@pytest.fixture
def serve(small_config: Config, free_port: int) -> Iterator[Callable[..., Replay]]:
    servers = []

    def serve(**replay: Any) -> Replay:
        config = with_replay(small_config, **replay)
        servers.append(start_server([experience_table(config, LAYOUT)], free_port))
        address = f"localhost:{free_port}"
        return Replay(reverb.Client(address), address)

    yield serve
    for server in servers:
        server.stop()


def with_replay(config: Config, **replay: Any) -> Config:
    return dataclasses.replace(config, replay=dataclasses.replace(config.replay, **replay))


@pytest.mark.parametrize(("environments", "count"), [(1, 43), (3, 45), (8, 48), (13, 39)])
def test_every_transition_of_a_complete_item_arrives_once(
    serve: Callable[..., Replay], environments: int, count: int
) -> None:
    replay = serve()
    writer = replay.write(count, environments)
    leftovers = count % ROWS_PER_ITEM
    assert writer.unwritten == leftovers
    assert writer.close(LONG_S)
    assert replay.numbers() == list(range(count - leftovers))


def test_two_writers_do_not_mix_their_items(serve: Callable[..., Replay]) -> None:
    replay = serve()
    writers = [TransitionWriter(replay.client, LAYOUT) for _ in range(2)]
    for start in range(0, 24, 3):
        for i, writer in enumerate(writers):
            writer.write(numbered(np.arange(start, start + 3) + 100 * i))
    assert all(writer.close(LONG_S) for writer in writers)
    assert replay.numbers() == [*range(24), *range(100, 124)]


def test_written_rows_may_be_overwritten_by_their_owner(serve: Callable[..., Replay]) -> None:
    replay = serve()
    writer = TransitionWriter(replay.client, LAYOUT)
    rows = numbered(np.arange(8))
    writer.write(rows)
    for block in rows.values():
        block.fill(77)
    assert writer.close(LONG_S)
    assert replay.numbers() == list(range(8))


def test_beyond_the_capacity_the_oldest_are_removed(serve: Callable[..., Replay]) -> None:
    replay = serve(capacity=40)
    replay.fill(200)
    assert replay.status().size == 40
    assert replay.numbers() == list(range(160, 200))


def test_status_counts_transitions(serve: Callable[..., Replay]) -> None:
    replay = serve(capacity=40)
    assert replay.status() == ReplayStatus(size=0, inserts=0, samples=0)
    assert replay.status().samples_per_insert == 0.0
    replay.fill(64)
    assert replay.status() == ReplayStatus(size=40, inserts=64, samples=0)
    assert len(list(replay.client.sample(EXPERIENCE_TABLE, 3))) == 3
    status = replay.status()
    assert status == ReplayStatus(size=40, inserts=64, samples=24)
    assert status.samples_per_insert == 24 / 64


def test_without_updates_per_env_step_only_the_minimum_size_bars_sampling(
    serve: Callable[..., Replay], small_config: Config
) -> None:
    replay = serve(min_size=20)
    replay.fill(16)
    assert replay.sample_until_barred() == 0
    replay.fill(8)
    assert len(list(replay.client.sample(EXPERIENCE_TABLE, 500))) == 500
    replay.fill(400)
    assert replay.status().inserts == 424


RATIO = {"updates_per_env_step": 0.5, "min_size": 24, "error_buffer": 16.0}
"""With batches of 4: SPI 2, at least 3 items, and 2 items (4 samples) by which either side may be ahead."""


def test_inserts_wait_for_samples_at_the_planned_bound(
    serve: Callable[..., Replay], small_config: Config, eventually: Callable[..., None]
) -> None:
    replay = serve(**RATIO)
    limit = plan_rate_limit(with_replay(small_config, **RATIO))
    assert limit.samples_per_insert == 2
    most = round(limit.min_size + limit.error_buffer / limit.samples_per_insert)
    writer = TransitionWriter(replay.client, LAYOUT)
    writer.write(numbered(np.arange(20 * ROWS_PER_ITEM)))
    # More items than may be unconfirmed are held back: the actor is told so, and does not hang.
    assert not writer.flush(SHORT_S)
    assert replay.status().inserts == most * ROWS_PER_ITEM
    for sampled in (2, 4, 6):
        assert len(list(replay.client.sample(EXPERIENCE_TABLE, 2))) == 2
        expected = (most + sampled // 2) * ROWS_PER_ITEM
        eventually(lambda expected=expected: replay.status().inserts >= expected)
        assert not writer.flush(SHORT_S)
        assert replay.status().inserts == expected
    assert not writer.close(SHORT_S)


def test_samples_wait_for_inserts_at_the_planned_bound(
    serve: Callable[..., Replay], small_config: Config
) -> None:
    replay = serve(**RATIO)
    limit = plan_rate_limit(with_replay(small_config, **RATIO))
    replay.fill((limit.min_size - 1) * ROWS_PER_ITEM)
    assert replay.sample_until_barred() == 0
    replay.fill(ROWS_PER_ITEM)
    assert replay.sample_until_barred() == limit.error_buffer
    replay.fill(ROWS_PER_ITEM)
    assert replay.sample_until_barred() == limit.samples_per_insert
    assert replay.status().inserts == (limit.min_size + 1) * ROWS_PER_ITEM


def test_a_writer_held_back_loses_nothing(serve: Callable[..., Replay]) -> None:
    replay = serve(**RATIO)
    writer = TransitionWriter(replay.client, LAYOUT)
    count = 10 * ROWS_PER_ITEM
    writer.write(numbered(np.arange(count)))
    assert not writer.flush(SHORT_S, pending_items=0)
    held_back = count // ROWS_PER_ITEM - replay.status().inserts // ROWS_PER_ITEM
    assert held_back == 5
    list(replay.client.sample(EXPERIENCE_TABLE, 2 * held_back))
    assert writer.close(LONG_S)
    assert replay.status() == ReplayStatus(size=count, inserts=count, samples=10 * ROWS_PER_ITEM)


def batches_of(replay: Replay, batch_size: int, per_replica: int, elements: int) -> list[Any]:
    dataset = experience_dataset(replay.address, LAYOUT, batch_size, per_replica)
    return list(dataset.take(elements).as_numpy_iterator())


@pytest.mark.parametrize("per_replica", [16, 8, 4])
def test_elements_are_batches_for_one_replica(serve: Callable[..., Replay], per_replica: int) -> None:
    replay = serve()
    replay.fill(240)
    dataset = experience_dataset(replay.address, LAYOUT, 16, per_replica)
    transition, policy_train_step = dataset.element_spec
    assert transition.time_step.observation["vector"].dtype == tf.float32
    assert transition.time_step.observation["image"].dtype == tf.uint8
    assert policy_train_step.dtype == tf.int64
    for transition, policy_train_step in batches_of(replay, 16, per_replica, 5):
        number = transition.next_time_step.reward
        assert number.shape == (per_replica,)
        assert transition.time_step.observation["vector"].shape == (per_replica, 3)
        assert transition.time_step.observation["image"].shape == (per_replica, 2, 2, 1)
        assert transition.action_step.action.shape == (per_replica, 2)
        # All parts of a row are still those of one transition.
        np.testing.assert_array_equal(transition.time_step.observation["vector"][:, 0], number)
        np.testing.assert_array_equal(transition.time_step.observation["image"][:, 0, 0, 0], number)
        np.testing.assert_array_equal(transition.next_time_step.observation["vector"][:, 0], number + 1)
        np.testing.assert_array_equal(transition.next_time_step.discount, number % 7 != 0)
        np.testing.assert_array_equal(policy_train_step, number // 10)


@pytest.mark.parametrize(("batch_size", "per_replica"), [(32, 32), (32, 16)])
def test_the_rows_of_an_item_are_spread_over_the_batches(
    serve: Callable[..., Replay], batch_size: int, per_replica: int
) -> None:
    replay = serve(capacity=16_000)
    replay.fill(16_000)
    elements = ROWS_PER_ITEM * batch_size // per_replica
    batches = [
        transition.next_time_step.reward.astype(int)
        for transition, _ in batches_of(replay, batch_size, per_replica, elements)
    ]
    # Together they are whole items, each as often as it was sampled.
    numbers, times = np.unique(np.concatenate(batches), return_counts=True)
    items = numbers.reshape(-1, ROWS_PER_ITEM)
    np.testing.assert_array_equal(items, items[:, :1] + np.arange(ROWS_PER_ITEM))
    np.testing.assert_array_equal(items[:, 0] % ROWS_PER_ITEM, 0)
    per_item = times.reshape(-1, ROWS_PER_ITEM)
    np.testing.assert_array_equal(per_item, np.broadcast_to(per_item[:, :1], per_item.shape))
    assert per_item[:, 0].sum() == batch_size
    # Drawn without regard to items, b of 8 b rows hit b (1 - (7/8)^8) = 66 % of b different items, and
    # b/2 rows (one of two replicas) 79 %; rows of the same items would be 13 %.
    distinct = [len(np.unique(batch // ROWS_PER_ITEM)) / per_replica for batch in batches]
    assert np.mean(distinct) > 0.58
    # Batches are not made of the same items in the same order either.
    assert len({tuple(batch) for batch in batches}) == len(batches)
