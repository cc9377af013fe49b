"""Real environments: time limits, seeds and refusals."""

import subprocess
import sys
import types

import gym
import numpy as np
import pytest
from tf_agents.environments import py_environment

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.load import episode_limit, load_environment
from actorlearner.errors import ConfigurationError


@pytest.fixture
def load():
    """Loads environments, and closes them after the test."""
    loaded = []

    def load(suite, name, seed=0, **keys):
        loaded.append(load_environment(EnvironmentConfig(suite=suite, name=name, **keys), seed))
        return loaded[-1]

    yield load
    for environment in loaded:
        environment.close()


def episode(environment, action=None):
    """The steps of one episode of a fixed action."""
    spec = environment.action_spec
    action = np.zeros(spec.shape, spec.dtype) if action is None else action
    environment.reset()
    steps = [environment.step(action)]
    while not steps[-1].last:
        steps.append(environment.step(action))
    return steps


@pytest.mark.parametrize(
    ("suite", "name", "limit"),
    [("gym", "Pendulum-v1", 200), ("pybullet", "HalfCheetahBulletEnv-v0", 1000)],
)
def test_the_environments_own_limit_truncates(suite, name, limit, load):
    steps = episode(load(suite, name))
    assert len(steps) == limit
    assert {step.discount for step in steps} == {1.0}
    assert steps[0].observation.dtype == np.float32


@pytest.mark.parametrize(
    ("suite", "name"), [("gym", "CartPole-v1"), ("pybullet", "InvertedPendulumBulletEnv-v0")]
)
def test_a_fall_terminates(suite, name, load):
    steps = episode(load(suite, name))
    assert len(steps) < 200
    assert [step.discount for step in steps] == [1.0] * (len(steps) - 1) + [0.0]


@pytest.mark.parametrize("limit", [5, 300])
def test_the_configured_limit_replaces_the_environments(limit, load):
    steps = episode(load("gym", "Pendulum-v1", max_episode_steps=limit))
    assert len(steps) == limit
    assert steps[-1].discount == 1.0
    assert gym.spec("Pendulum-v1").max_episode_steps == 200


def test_kwargs_reach_the_constructor(load):
    heavy = episode(load("gym", "Pendulum-v1", max_episode_steps=2, kwargs={"g": 0.0}))
    normal = episode(load("gym", "Pendulum-v1", max_episode_steps=2))
    assert heavy[0].observation.tolist() != normal[0].observation.tolist()


@pytest.mark.parametrize(
    ("suite", "name"),
    [("gym", "Pendulum-v1"), ("gym", "CartPole-v1"), ("pybullet", "HalfCheetahBulletEnv-v0")],
)
def test_the_seed_decides_the_episodes(suite, name, load):
    def observations(seed):
        environment = load(suite, name, seed, max_episode_steps=3)
        return [step.observation.tolist() for _ in range(2) for step in episode(environment)]

    assert observations(1) == observations(1)
    assert observations(1) != observations(2)


def test_nothing_is_printed():
    code = (
        "from actorlearner.config.schema import EnvironmentConfig as C\n"
        "from actorlearner.environments.load import load_environment as load\n"
        "for name in ('HalfCheetahBulletEnv-v0', 'MinitaurBulletEnv-v0'):\n"
        "    environment = load(C(suite='pybullet', name=name), 0)\n"
        "    environment.reset()\n"
        "    environment.close()\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (process.stdout, process.stderr) == ("", "")


@pytest.fixture
def module(monkeypatch):
    """A module of the user's own."""
    own = types.ModuleType("users_environments")
    monkeypatch.setitem(sys.modules, "users_environments", own)
    return own


SUITE = "users_environments:make"


def test_an_own_gym_environment_gets_name_kwargs_and_limit(module, load):
    calls = []

    def make(*args, **kwargs):
        calls.append((args, kwargs))
        return gym.make("Pendulum-v1").unwrapped

    module.make = make
    steps = episode(load(SUITE, "swing", kwargs={"g": 9}, max_episode_steps=4))
    load(SUITE, "")
    assert calls == [(("swing",), {"g": 9}), ((), {})]
    assert [(step.discount, step.last) for step in steps] == [(1.0, False)] * 3 + [(1.0, True)]


def test_an_own_py_environment(module, load):
    from tf_agents.environments import suite_gym

    module.make = suite_gym.load
    steps = episode(load(SUITE, "Pendulum-v1"))
    assert (len(steps), steps[-1].discount) == (200, 1.0)


def refusal(suite, name, **keys):
    with pytest.raises(ConfigurationError) as raised:
        load_environment(EnvironmentConfig(suite=suite, name=name, **keys), 0)
    (line,) = raised.value.problems
    assert "\n" not in line
    return line


def test_an_unknown_name_is_refused_with_the_closest_ones():
    line = refusal("gym", "Pendulm-v1")
    assert line.startswith("environment.name: ")
    assert "Pendulum-v1" in line


def test_a_constructor_that_raises_is_refused(module):
    def make(name, gravity):
        raise ValueError("no gravity")

    module.make = make
    line = refusal(f"{module.__name__}:make", "moon", kwargs={"gravity": 1})
    number = make.__code__.co_firstlineno + 1
    assert line == (
        'environment.kwargs: "moon" cannot be made with {"gravity": 1}: ValueError: no gravity '
        f"at {__file__}:{number}"
    )


def test_a_reset_that_raises_is_refused(module):
    class Broken(gym.Env):
        observation_space = action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

        def reset(self):
            raise RuntimeError("no display\nfound")

        def close(self):
            closed.append(self)

    closed = []
    module.make = Broken
    line = refusal(SUITE, "")
    assert len(closed) == 1
    reason = f"cannot be reset: RuntimeError: no display found at {__file__}:"
    assert line.startswith(f'environment.name: "{SUITE}" {reason}')


def test_an_observation_outside_its_spec_is_refused(module):
    class Broken(gym.Env):
        observation_space = action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

        def reset(self):
            return np.zeros(4)

    module.make = Broken
    assert "returned observation with shape [4]" in refusal(SUITE, "")


def test_something_else_than_an_environment_is_refused(module):
    module.make = dict
    line = refusal(SUITE, "")
    assert line.startswith(f'environment.suite: "{SUITE}" returned dict, which lacks reset, step')


def test_a_missing_callable_is_refused(module):
    assert refusal(SUITE, "x").startswith("environment.suite: ")


class Speechless(py_environment.PyEnvironment):
    def observation_spec(self):
        raise RuntimeError("no words")

    action_spec = observation_spec

    def _reset(self):
        raise NotImplementedError

    def _step(self, action):
        raise NotImplementedError


def test_specs_that_cannot_be_read_are_a_problem_of_the_configuration() -> None:
    with pytest.raises(
        ConfigurationError, match=r'name: "tests.+Speechless" has specs that cannot be used: Runtim'
    ):
        load_environment(EnvironmentConfig(suite=f"{__name__}:Speechless", name=""), 0)


@pytest.mark.parametrize(
    ("suite", "name", "keys", "limit"),
    [
        ("gym", "Pendulum-v1", {}, 200),
        ("gym", "Pendulum-v1", {"max_episode_steps": 30}, 30),
        ("pybullet", "HalfCheetahBulletEnv-v0", {"action_repeat": 3}, 334),
        ("gymnasium", "Pendulum-v1", {}, 200),
        ("tests.support.camera:Camera", "", {"max_episode_steps": 30, "action_repeat": 2}, 15),
    ],
)
def test_the_limit_of_episodes_is_known(load, suite, name, keys, limit):
    assert episode_limit(EnvironmentConfig(suite, name, **keys)) == limit
    assert len(episode(load(suite, name, **keys))) == limit


def test_a_callable_has_no_limit_that_is_known():
    assert episode_limit(EnvironmentConfig("tests.support.camera:Camera", "")) is None
