"""Frames that are stacked, and actions that are repeated."""

import dataclasses

import gymnasium
import numpy as np
import pytest

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.environment import Step
from actorlearner.environments.load import load_environment
from actorlearner.environments.wrappers import ActionRepeat, FrameStack
from actorlearner.errors import ConfigurationError
from tests.support.camera import Camera

CARTPOLE = EnvironmentConfig(suite="gym", name="CartPole-v1")
ACTION = np.array(1)


class Pictures(gymnasium.ObservationWrapper):
    """Camera's pictures alone."""

    def __init__(self):
        super().__init__(Camera())
        self.observation_space = self.env.observation_space["picture"]

    def observation(self, observation):
        return observation["picture"]


def same(**keys):
    """An unchanged CartPole and one with these keys, both with the same seed."""
    return load_environment(CARTPOLE, 3), load_environment(dataclasses.replace(CARTPOLE, **keys), 3)


def test_the_newest_observation_comes_last_and_the_first_stands_for_missing_ones():
    plain, stacked = same(frame_stack=3)
    assert stacked.observation_spec.shape == (12,)
    seen = [plain.reset()]
    np.testing.assert_array_equal(stacked.reset(), np.concatenate([seen[0]] * 3))
    for _ in range(3):
        seen.append(plain.step(ACTION).observation)
        observation = stacked.step(ACTION).observation
        np.testing.assert_array_equal(observation, np.concatenate([seen[0], seen[0], *seen][-3:]))
    np.testing.assert_array_equal(stacked.reset(), np.concatenate([plain.reset()] * 3))


def test_images_are_stacked_along_their_channels():
    config = EnvironmentConfig("tests.environments.test_wrappers:Pictures", "")
    environment = FrameStack(load_environment(config, 0), 4)
    height, width, channels = environment.observation_spec.shape
    assert channels == 4
    assert environment.reset().shape == (height, width, 4)
    assert environment.observation_spec.maximum.shape == (height, width, 4)


def test_a_dict_cannot_be_stacked():
    with pytest.raises(ConfigurationError, match=r"environment\.frame_stack: 2 cannot work; allowed: "):
        load_environment(EnvironmentConfig("tests.support.camera:Camera", "", frame_stack=2), 0)


def test_rewards_of_a_repeated_action_are_summed_up_to_the_end():
    plain, repeated = same(action_repeat=4)
    plain.reset(), repeated.reset()
    lengths = 0
    while not plain.step(ACTION).last:
        lengths += 1
    lengths += 1
    rewards = []
    while True:
        step = repeated.step(ACTION)
        rewards.append(step.reward)
        if step.last:
            break
    assert rewards[:-1] == [4.0] * (len(rewards) - 1)
    assert sum(rewards) == lengths


def test_one_env_step_that_is_rejected_rejects_them_all():
    class Rejects:
        observation_spec = action_spec = None

        def step(self, action):
            self.count = getattr(self, "count", 0) + 1
            return Step(None, -np.inf if self.count == 2 else 1.0, 1.0, last=False)

    rejects = Rejects()
    assert ActionRepeat(rejects, 3).step(ACTION).reward == -np.inf
    assert rejects.count == 2, "the rejected action is not repeated"


def test_discounts_of_repeated_actions_are_multiplied():
    class Halves:
        observation_spec = action_spec = None

        def step(self, action):
            return Step(None, 1.0, 0.5, last=False)

    step = ActionRepeat(Halves(), 4).step(ACTION)
    assert (step.reward, step.discount) == (1.875, 0.0625)


def test_films_of_repeated_actions_play_in_simulated_time():
    plain, repeated = same(action_repeat=4)
    assert repeated.frame_rate == plain.frame_rate / 4
