"""How many env steps a collect actor takes before its policy acts."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from actorlearner.agents.dqn import DqnBuilder
from actorlearner.agents.experience import Experience
from actorlearner.config.schema import CollectConfig, Config
from actorlearner.errors import ConfigurationError
from actorlearner.replay.reverb_calls import NoAnswerError
from actorlearner.replay.status import ReplayStatus
from actorlearner.roles.collect_actor import _act_initially, _initial_policy
from tests.support.replay import SPECS


def env_steps(config: Config, *inserts: int | None) -> int:
    """Acts initially, and returns the env steps; the server reports `inserts`, or does not answer (None)."""
    taken: list[Any] = []
    reports = iter(inserts)

    def status(timeout_s: int) -> ReplayStatus:
        if (count := next(reports)) is None:
            raise NoAnswerError("the replay server has not answered within 5 s")
        return ReplayStatus(count, count, 0)

    collector: Any = SimpleNamespace(ended=False, step=lambda policy, order: taken.append(order))
    replay: Any = SimpleNamespace(status=status)
    _act_initially(config, collector, replay, None)  # type: ignore[arg-type]
    return len(taken)


@pytest.fixture
def config(small_config: Config) -> Config:
    collect = CollectConfig(actors=1, envs_per_actor=1, initial_random_steps=1_000)
    return dataclasses.replace(small_config, collect=collect)


def test_an_actor_takes_half_of_what_is_missing_and_checks_again(config: Config) -> None:
    assert env_steps(config, 0, 500, 1_000) == 500 + 250


def test_a_server_that_does_not_answer_is_polled_again_after_each_env_step(config: Config) -> None:
    """It does not answer while it writes a checkpoint, and replay may be full already."""
    assert env_steps(config, None, None, 1_000_000) == 2


def test_without_initial_env_steps_there_are_none(config: Config) -> None:
    collect = dataclasses.replace(config.collect, initial_random_steps=0)
    assert env_steps(dataclasses.replace(config, collect=collect), None) == 0


def test_sequences_with_an_info_of_each_action_allow_no_initial_env_steps(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An own algorithm may learn from the probabilities of its actions, which random actions do not have."""
    specs = {"log_probability": tf.TensorSpec([], tf.float32)}, ()
    monkeypatch.setattr(DqnBuilder, "policy_specs", lambda builder, config, of: specs)
    with pytest.raises(ConfigurationError) as refused:
        _initial_policy(config, SPECS, Experience(length=4, stride=2), 0)
    assert refused.value.problems == (
        "collect.initial_random_steps: 1000 cannot work; allowed: 0, because agent.name dqn learns from its "
        "policy's info of each action",
    )
    collect = dataclasses.replace(config.collect, initial_random_steps=0)
    _initial_policy(dataclasses.replace(config, collect=collect), SPECS, Experience(length=4, stride=2), 0)
    _initial_policy(config, SPECS, Experience(), 0)
