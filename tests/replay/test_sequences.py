"""Sequences from env steps."""

import numpy as np
import pytest

from actorlearner.environments.environment import EnvSteps
from actorlearner.replay.sequences import SequenceBuilder

ENVIRONMENTS, COUNT = 2, 11


def env_steps(number: int) -> EnvSteps:
    numbers = 100 * np.arange(ENVIRONMENTS) + number
    flags = np.zeros(ENVIRONMENTS, np.bool_)
    return EnvSteps(
        observation={"x": numbers[:, None].astype(np.float32)},
        first=flags,
        action=numbers,
        reward=numbers.astype(np.float32),
        discount=np.ones(ENVIRONMENTS, np.float32),
        next_observation={"x": numbers[:, None] + 1.0},
        last=flags,
        policy_train_step=numbers,
        valid=~flags,
        policy_generation=numbers,
        policy_info=numbers,
        policy_state=(numbers,),
    )


@pytest.mark.parametrize(("length", "stride"), [(4, 4), (4, 2), (3, 1), (2, 2)])
def test_a_sequence_begins_every_stride_env_steps_of_each_environment(length: int, stride: int) -> None:
    builder = SequenceBuilder(length, stride)
    made = [builder.add(env_steps(number)) for number in range(COUNT)]
    sequences = [sequence for sequence in made if sequence is not None]
    starts = list(range(0, COUNT - length + 1, stride))
    assert len(sequences) == len(starts)
    for start, sequence in zip(starts, sequences, strict=True):
        expected = 100 * np.arange(ENVIRONMENTS)[:, None] + np.arange(start, start + length)
        np.testing.assert_array_equal(sequence.reward, expected)
        np.testing.assert_array_equal(sequence.policy_info, expected)
        np.testing.assert_array_equal(sequence.observation["x"][..., 0], expected)
        np.testing.assert_array_equal(sequence.policy_state[0], expected[:, 0])
        np.testing.assert_array_equal(sequence.policy_generation, expected[:, 0])
    assert builder.end() is None
