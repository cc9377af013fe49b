"""Prioritised replay on a real server: probabilities, weights and updates against their formulas."""

import dataclasses
import json
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import reverb
import tensorflow as tf

from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.experience import Priorities
from actorlearner.config.schema import Config
from actorlearner.learning.priorities import MIN_PRIORITY, PriorityWriter, importance_weights
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.layout import make_layout
from actorlearner.replay.packed import SampleInfo
from tests.support.processes import run_script, wait_for
from tests.support.replay import SPECS, Replay, with_replay

UNITS = 40
EXPONENT = 0.6

ON_TWO_REPLICAS = """
import json

import tensorflow as tf

from actorlearner.agents.experience import Priorities
from actorlearner.learning.priorities import importance_weights
from actorlearner.learning.strategy import make_strategy
from actorlearner.replay.packed import SampleInfo

strategy = make_strategy("mirrored:2", 6)
all_items = SampleInfo(
    key=tf.range(6),
    probability=tf.constant([0.1, 0.02, 0.5, 0.3, 0.004, 0.2], tf.float64),
    table_size=tf.fill([6], tf.constant(10, tf.int64)),
)
priorities = Priorities(0.6, importance_exponent=0.4)


def half(context):
    first = 3 * context.replica_id_in_sync_group
    return tf.nest.map_structure(lambda part: part[first : first + 3], all_items)


@tf.function
def weights(halves):
    return strategy.run(lambda own: importance_weights(own, priorities), args=(halves,))


found = strategy.experimental_local_results(
    weights(strategy.experimental_distribute_values_from_function(half))
)
print(json.dumps({
    "all_items": importance_weights(all_items, priorities).numpy().tolist(),
    "halves": [part.numpy().tolist() for part in found],
}))
"""
"""In a process of its own, because logical devices can be made only before TensorFlow is used."""


@pytest.fixture
def replay(small_config: Config, free_port: int) -> Iterator[Replay]:
    agent = DqnConfig(priority_exponent=EXPONENT, importance_exponent=0.4)
    config = dataclasses.replace(with_replay(small_config, min_size=1), agent=agent)
    layout = make_layout(config, SPECS)
    server = reverb.Server([experience_table(config, layout)], free_port)
    address = f"localhost:{free_port}"
    replay = Replay(reverb.Client(address), address, layout)
    replay.fill(UNITS)
    yield replay
    server.stop()


def priorities_of(replay: Replay) -> dict[int, float]:
    samples = replay.client.sample(replay.layout.table, 2_000, emit_timesteps=False)
    return {sample.info.key: sample.info.priority for sample in samples}


def test_a_new_unit_has_the_priority_1_and_is_an_item(replay: Replay) -> None:
    assert set(priorities_of(replay).values()) == {1.0}
    assert replay.numbers() == list(range(UNITS))


def test_units_are_drawn_by_the_errors_written_back(replay: Replay) -> None:
    keys = np.array(sorted(priorities_of(replay)), np.uint64)
    errors = np.linspace(-2.0, 2.0, UNITS, dtype=np.float32)
    write = PriorityWriter(replay.client, replay.layout.table)
    write(keys, errors)
    wanted = np.clip(np.abs(errors) / 2.0, MIN_PRIORITY, 1.0)
    wait_for(lambda: priorities_of(replay)[int(keys[1])] == pytest.approx(wanted[1]), "the priorities")
    chances = dict(zip(keys.tolist(), wanted**EXPONENT / np.sum(wanted**EXPONENT), strict=True))

    dataset = experience_dataset([replay.address], replay.layout, UNITS, UNITS)
    batches = iter(dataset)
    drawn: dict[int, int] = dict.fromkeys(chances, 0)
    for _ in range(200):
        rows, how = next(batches)
        assert rows.shape[0] == UNITS
        for key, chance, size in zip(*(part.numpy() for part in how), strict=True):
            assert chance == pytest.approx(chances[int(key)], rel=1e-4)
            assert size == UNITS
            drawn[int(key)] += 1
    counts, total = np.array([drawn[key] for key in chances]), 200 * UNITS
    expected = total * np.array(list(chances.values()))
    assert np.sum((counts - expected) ** 2 / expected) < 100  # 39 degrees of freedom: p < 1e-6.


def test_a_key_of_another_server_and_a_removed_unit_are_skipped(replay: Replay) -> None:
    (key, *_) = priorities_of(replay)
    write = PriorityWriter(replay.client, replay.layout.table)
    write(np.array([1, key], np.uint64), np.array([5.0, 2.5], np.float32))
    wait_for(lambda: priorities_of(replay)[key] == 0.5, "the priority of the unit that is there")


def test_weights_follow_the_formula() -> None:
    chances = np.array([0.1, 0.02, 0.5])
    size = tf.constant([10, 10, 10], tf.int64)
    drawn = SampleInfo(tf.constant([1, 2, 3], tf.uint64), tf.constant(chances, tf.float64), size)
    weights = importance_weights(drawn, Priorities(EXPONENT, importance_exponent=0.4)).numpy()
    formula = (10 * chances) ** -0.4
    np.testing.assert_allclose(weights, formula / formula.max(), rtol=1e-6)


def test_weights_are_divided_by_the_largest_of_all_replicas() -> None:
    done = run_script(ON_TWO_REPLICAS)
    assert done.returncode == 0, done.stderr
    weights = json.loads(done.stdout.splitlines()[-1])
    assert max(weights["all_items"]) == 1.0
    np.testing.assert_allclose(np.concatenate(weights["halves"]), weights["all_items"], rtol=1e-6)


def test_priorities_do_not_depend_on_the_scale_of_errors(free_port: int) -> None:
    writer = PriorityWriter(reverb.Client(f"localhost:{free_port}"), "any")
    errors = np.array([0.5, -1.0, 0.0], np.float32)
    np.testing.assert_allclose(writer.priorities(1_000 * errors), [0.5, 1.0, MIN_PRIORITY])
    for _ in range(10_000):  # Large errors of long ago are forgotten.
        latest = writer.priorities(errors)
    np.testing.assert_allclose(latest, [0.5, 1.0, MIN_PRIORITY])


def test_a_server_that_is_away_leaves_no_threads_behind(free_port: int) -> None:
    write = PriorityWriter(reverb.Client(f"localhost:{free_port}"), "any")
    before = set(threading.enumerate())
    for _ in range(20):
        write(np.array([1], np.uint64), np.array([1.0], np.float32))
        time.sleep(0.01)
    assert not set(threading.enumerate()) - before
