"""Packing transitions into rows and unpacking them loses nothing."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree
from reverb import ReplaySample
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step

from actorlearner.agents.experience import StoredTransition, as_transition
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.item_size import MAX_ROWS
from actorlearner.replay.packed import PackedLayout
from actorlearner.replay.rows import ROWS
from tests.support.training import packed

VECTOR = tf.TensorSpec([5], tf.float32, "observation")
DICT = {
    "velocity": tf.TensorSpec([3], tf.float32),
    "image": tensor_spec.BoundedTensorSpec([4, 6, 3], tf.uint8, 0, 255),
    "contacts": tf.TensorSpec([5], tf.bool),
    "goal": (tf.TensorSpec([], tf.int32), tf.TensorSpec([2, 2], tf.float32)),
}
CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0, "action")
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 3, "action")

CASES = {
    "vector": (VECTOR, CONTINUOUS, 4 * (5 + 2 + 1 + 1 + 5) + 8),
    "dict": (DICT, CONTINUOUS, 4 * (2 * (3 + 4) + 2 + 2) + 2 * 72 + 2 * 4 + 2 * 5 + 8),
    "discrete": (VECTOR, DISCRETE, 4 * (5 + 1 + 1 + 5) + 2 * 8),
}


def specs_of(case: str) -> EnvironmentSpecs:
    observation, action, _ = CASES[case]
    return EnvironmentSpecs(observation, action, time_step.time_step_spec(observation))


def layout_of(specs: EnvironmentSpecs) -> PackedLayout:
    return PackedLayout(specs, n_step=1, gamma=0.99)


def values(spec: Any, batch: int, random: np.random.Generator) -> np.ndarray:
    """Arrays that differ in every element, up to the largest that the dtype holds."""
    dtype = spec.dtype.as_numpy_dtype
    shape = (batch, *spec.shape)
    if spec.dtype == tf.bool:
        return random.integers(0, 2, shape).astype(dtype)
    if spec.dtype.is_integer:
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return random.normal(size=shape).astype(dtype)


def random_transition(specs: EnvironmentSpecs, batch: int) -> StoredTransition:
    random = np.random.default_rng(batch)

    def nest(spec: Any) -> Any:
        return tree.map_structure(lambda leaf: values(leaf, batch, random), spec)

    scalar, step = tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int64)
    return StoredTransition(
        observation=nest(specs.observation),
        action=nest(specs.action),
        reward=nest(scalar),
        discount=nest(scalar),
        next_observation=nest(specs.observation),
        policy_train_step=nest(step),
    )


def assert_same(actual: Any, expected: Any) -> None:
    tree.assert_same_structure(actual, expected)
    for leaf, other in zip(tree.flatten(actual), tree.flatten(expected), strict=True):
        assert leaf.dtype.as_numpy_dtype == other.dtype
        np.testing.assert_array_equal(leaf.numpy(), other)


@pytest.mark.parametrize("batch", [1, 8, 13])
@pytest.mark.parametrize("case", CASES)
def test_a_round_trip_is_exact(case: str, batch: int) -> None:
    specs = specs_of(case)
    layout = layout_of(specs)
    stored = random_transition(specs, batch)
    decode = tf.function(layout.decode)
    decoded = decode(tf.constant(packed(layout.format, stored)))
    assert_same(decoded, stored)


def test_transitions_have_mid_time_steps() -> None:
    specs = specs_of("vector")
    layout = layout_of(specs)
    stored = random_transition(specs, 3)._replace(discount=np.zeros(3, np.float32))
    transition = as_transition(layout.decode(tf.constant(packed(layout.format, stored))))
    middle = np.full(3, time_step.StepType.MID)
    np.testing.assert_array_equal(transition.time_step.step_type, middle)
    np.testing.assert_array_equal(transition.next_time_step.step_type, middle)
    np.testing.assert_array_equal(transition.time_step.reward, [0, 0, 0])
    np.testing.assert_array_equal(transition.time_step.discount, [1, 1, 1])
    np.testing.assert_array_equal(transition.next_time_step.discount, [0, 0, 0])
    assert transition.time_step.step_type.dtype == tf.int32
    assert transition.action_step.state == ()
    assert transition.action_step.info == ()


@pytest.mark.parametrize("case", CASES)
def test_an_item_is_one_block_of_rows(case: str) -> None:
    layout = layout_of(specs_of(case))
    width = CASES[case][2]
    assert layout.format.width == width
    assert layout.signature == {"rows": tf.TensorSpec([1, MAX_ROWS, width], tf.uint8, "rows")}


def test_a_batch_that_does_not_fit_is_written_in_parts() -> None:
    specs = specs_of("dict")
    layout = layout_of(specs)
    stored = random_transition(specs, 7)
    records = layout.format.unused(5)
    assert layout.format.write(stored, 0, records, 2) == 3
    rows = tf.constant(layout.format.as_bytes(records))
    np.testing.assert_array_equal(layout.format.is_used(rows), [False, False, True, True, True])
    assert layout.format.write(stored, 3, records, 0) == 4
    after = layout.format.unpack(tf.constant(layout.format.as_bytes(records)))
    np.testing.assert_array_equal(after.reward, stored.reward[[3, 4, 5, 6, 2]])


def test_bytes_are_not_copied_but_transitions_are() -> None:
    specs = specs_of("dict")
    layout = layout_of(specs)
    stored = random_transition(specs, 5)
    records = layout.format.unused(5)
    layout.format.write(stored, 0, records, 0)
    assert np.shares_memory(layout.format.as_bytes(records), records)
    assert not any(np.shares_memory(records, leaf) for leaf in tree.flatten(stored))


def test_every_process_derives_the_same_layout() -> None:
    specs = specs_of("dict")
    reordered = EnvironmentSpecs(
        {key: specs.observation[key] for key in reversed(specs.observation)}, specs.action, specs.time_step
    )
    writer, reader = layout_of(specs), layout_of(reordered)
    assert writer.signature == reader.signature
    stored = random_transition(specs, 2)
    decoded = reader.decode(tf.constant(packed(writer.format, stored)))
    assert_same(decoded.observation, stored.observation)


def test_each_row_is_in_one_batch_in_random_order() -> None:
    """The order in which rows were written is that of the environments' time."""
    tf.random.set_seed(0)
    specs, count = specs_of("vector"), 64
    layout = layout_of(specs)
    written = random_transition(specs, count * MAX_ROWS)
    written = written._replace(policy_train_step=np.arange(count * MAX_ROWS))
    records = layout.format.unused(count * MAX_ROWS)
    layout.format.write(written, 0, records, 0)
    blocks = layout.format.as_bytes(records).reshape(count, 1, MAX_ROWS, -1)
    items = tf.data.Dataset.from_tensor_slices(blocks).map(lambda block: ReplaySample((), {ROWS: block}))

    batches = layout.batches(items, count, count)

    numbers = np.stack([layout.decode(batch).policy_train_step for batch, _ in batches])
    np.testing.assert_array_equal(np.sort(numbers, axis=None), np.arange(count * MAX_ROWS))
    place = numbers % MAX_ROWS
    for apart in range(1, MAX_ROWS):
        turned = (place[apart:] - place[:-apart]) % MAX_ROWS
        commonest = np.bincount(turned.ravel()).max() / turned.size
        assert commonest < 0.25, f"{commonest:.0%} of rows are as far from those {apart} batches before"
