"""The arguments of a callable that makes environments."""

import gym
import pytest

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.load import load_environment

CALLS = []


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def make(role, index, netlist="none"):
    CALLS.append((role, index, netlist))
    return gym.make("CartPole-v1")


def make_plain():
    return gym.make("CartPole-v1")


def test_a_callable_receives_role_and_index_if_it_accepts_them():
    module = "tests.environments.test_load_place"
    load_environment(EnvironmentConfig(f"{module}:make_plain", ""), 0, role="collect-actor", index=3)
    config = EnvironmentConfig(f"{module}:make", "", kwargs={"netlist": "a"})
    load_environment(config, 0, role="collect-actor", index=3)
    assert CALLS == [("collect-actor", 3, "a")]


def test_a_callable_receives_the_role_alone_whatever_the_environment_is_for():
    config = EnvironmentConfig("tests.environments.test_load_place:make", "")
    for purpose in ("", "video", "best policy"):
        load_guarded(config, 0, "eval-actor", 0, 0, purpose=purpose).close()
    assert CALLS == [("eval-actor", 0, "none")] * 3
