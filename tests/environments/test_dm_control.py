"""Tasks of dm_control's suite."""

import numpy as np
import pytest

from actorlearner.config.schema import Config, EnvironmentConfig
from actorlearner.environments.checks import environment_problems
from actorlearner.environments.load import episode_limit, load_environment
from actorlearner.errors import ConfigurationError


def config(name: str = "cartpole-balance", **keys) -> EnvironmentConfig:
    return EnvironmentConfig(suite="dm_control", name=name, **keys)


def test_observations_are_one_vector_and_equal_seeds_give_equal_episodes():
    first, second, other = (load_environment(config(), seed) for seed in (1, 1, 2))
    assert first.observation_spec.shape == (5,)
    assert first.action_spec.minimum == -1.0
    beginning = first.reset()
    assert beginning.dtype == np.float32
    np.testing.assert_array_equal(beginning, second.reset())
    assert np.any(beginning != other.reset())
    action = np.array([0.5], np.float32)
    np.testing.assert_array_equal(first.step(action).observation, second.step(action).observation)
    assert first.frame_rate == pytest.approx(100.0)


def test_a_time_limit_truncates():
    environment = load_environment(config(max_episode_steps=3), 0)
    environment.reset()
    steps = [environment.step(np.zeros(1, np.float32)) for _ in range(3)]
    assert [(step.last, step.discount) for step in steps] == [(False, 1.0), (False, 1.0), (True, 1.0)]


def test_a_time_limit_may_be_longer_than_that_of_the_task():
    environment = load_environment(config(max_episode_steps=1_002), 0)
    environment.reset()
    steps = [environment.step(np.zeros(1, np.float32)) for _ in range(1_002)]
    assert [step.last for step in steps] == [False] * 1_001 + [True]
    assert steps[-1].discount == 1.0


def test_an_unknown_task_is_refused_with_the_closest_name():
    (line,) = environment_problems(Config(environment=config("cheetah-runn")))
    assert line.startswith('environment.name: unknown task "cheetah-runn"')
    assert "did you mean cheetah-run" in line


def test_a_keyword_that_the_task_does_not_take_is_refused():
    with pytest.raises(ConfigurationError) as refusal:
        load_environment(config(kwargs={"no_such": 1}), 0)
    assert refusal.value.problems[0].startswith("environment.kwargs: ")


def test_the_limit_of_a_task_is_known():
    assert episode_limit(config(action_repeat=4)) == 250
    assert episode_limit(config(max_episode_steps=8)) == 8
