"""Advantages against their definition, and running moments against NumPy's."""

import numpy as np
import pytest
import tensorflow as tf

from actorlearner.agents.experience import StoredSequence
from actorlearner.agents.normalizer import RunningMoments
from actorlearner.agents.on_policy_agent import discounted_sums, generalized_advantages

GAMMA, DECAY = 0.9, 0.8
F, T = 3, 12


def sequences(random: np.random.Generator) -> StoredSequence:
    last = random.random([F, T]) < 0.3
    terminated = last & (random.random([F, T]) < 0.5)
    nothing = ()
    return StoredSequence(
        observation=nothing,
        action=nothing,
        reward=random.normal(size=[F, T]).astype(np.float32),
        discount=np.where(terminated, 0.0, random.choice([0.6, 1.0], [F, T])).astype(np.float32),
        next_observation=nothing,
        first=nothing,
        last=last,
        valid=random.random([F, T]) > 0.1,
        policy_info=nothing,
        policy_state=nothing,
        policy_train_step=np.zeros(F, np.int64),
        policy_generation=np.zeros(F, np.int64),
    )


def by_definition(stored: StoredSequence, values: np.ndarray, next_values: np.ndarray) -> np.ndarray:
    """The sum of discounted errors up to the end of the episode or of the sequence, step by step."""
    advantages = np.zeros([F, T])
    for i in range(F):
        for t in range(T):
            weight, k = 1.0, t
            while k < T:
                if stored.valid[i, k]:
                    target = stored.reward[i, k] + GAMMA * stored.discount[i, k] * next_values[i, k]
                    advantages[i, t] += weight * (target - values[i, k])
                    weight *= GAMMA * stored.discount[i, k] * DECAY
                if stored.last[i, k]:
                    break
                k += 1
    return advantages


@pytest.mark.parametrize("seed", range(5))
def test_advantages_are_those_of_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    stored = sequences(random)
    values, next_values = random.normal(size=[2, F, T]).astype(np.float32)
    computed = generalized_advantages(stored, stored.reward, values, next_values, GAMMA, DECAY)
    np.testing.assert_allclose(computed, by_definition(stored, values, next_values), rtol=1e-4, atol=1e-5)


def test_running_moments_are_those_of_all_valid_values() -> None:
    random = np.random.default_rng(0)
    values = random.normal(100.0, 3.0, size=[4, 5, 7, 2]).astype(np.float32)
    valid = random.random([4, 5, 7]) < 0.8
    moments = RunningMoments([2])
    np.testing.assert_array_equal(moments.deviation, [1.0, 1.0])
    for part, flags in zip(values, valid, strict=True):
        moments.update(tf.constant(part), tf.constant(flags))
    np.testing.assert_allclose(moments.mean, values[valid].mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(moments.deviation, values[valid].std(axis=0), rtol=1e-4)


@pytest.mark.parametrize("constant", [0.7, 12.34, 250.7, 1000.1])
def test_a_constant_observation_is_normalised_to_a_small_number(constant: float) -> None:
    """A sum of squares minus the square of a sum is negative for half of all constants in float32."""
    moments = RunningMoments([1])
    values = tf.fill([2048, 1], constant)
    for _ in range(3):
        moments.update(values)
        normalized = (values - moments.mean) / moments.deviation
        assert np.abs(normalized).max() <= 1.0


def test_a_small_spread_around_a_large_mean_is_measured() -> None:
    values = np.random.default_rng(0).normal(500.0, 0.01, size=[6, 256, 1]).astype(np.float32)
    moments = RunningMoments([1])
    for part in values:
        moments.update(tf.constant(part))
    np.testing.assert_allclose(moments.deviation, values.std(dtype=np.float64), rtol=0.02)


def test_discounted_sums_begin_again_with_each_episode() -> None:
    stored = sequences(np.random.default_rng(0))
    sums = discounted_sums(stored, GAMMA).numpy()
    for i in range(F):
        carried = 0.0
        for t in range(T):
            carried = GAMMA * carried + stored.reward[i, t]
            assert sums[i, t] == pytest.approx(carried, rel=1e-5)
            carried = 0.0 if stored.last[i, t] else stored.discount[i, t] * carried
