"""Checks of the replay section."""

import dataclasses
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.experience import Experience, Iteration
from actorlearner.agents.ppo import PpoConfig
from actorlearner.config.resolved import to_yaml
from actorlearner.config.schema import AgentConfig, CollectConfig, Config, LearnConfig
from actorlearner.config.shipped import shipped_configs
from actorlearner.errors import ConfigurationError
from actorlearner.replay.checks import replay_problems
from actorlearner.replay.item_size import MAX_ROWS
from actorlearner.replay.rate_limit import plan_rate_limit
from tests.support.configs import config_with
from tests.support.processes import REPOSITORY

_EXAMPLES = sorted(
    path.name for path in (REPOSITORY / "examples").glob("*.yaml") if not path.name.startswith("sweep_")
)
"""The examples that `actorlearner local` takes; the other YAML files are search spaces."""


def test_defaults_work() -> None:
    assert replay_problems(Config()) == []


def test_an_own_algorithm_may_lack_the_keys_of_the_shipped_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Experience(length=7, stride=7, iteration=Iteration(env_steps=15, epochs=1, max_policy_lag=0))
    builder = SimpleNamespace(experience=lambda config: own)
    monkeypatch.setattr("actorlearner.replay.checks.find_builder", lambda name: builder)
    config = dataclasses.replace(Config(), agent=AgentConfig(name="my_algorithms:MineBuilder"))
    assert replay_problems(config)[0] == (
        'agent.name: "my_algorithms:MineBuilder" cannot work; allowed: an algorithm whose '
        "experience has as env_steps_per_iteration a multiple of fragment_length (7)"
    )


@pytest.mark.parametrize("wrong", [{"length": 7}, {"stride": 7}, {}])
def test_an_iteration_takes_sequences_that_do_not_overlap(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="an iteration takes sequences with stride=length"):
        Experience(iteration=Iteration(14, 1, 0), **wrong)


@pytest.mark.parametrize("capacity", [11, 12])
def test_min_size_within_capacity(capacity: int) -> None:
    assert replay_problems(config_with(replay__min_size=11, replay__capacity=capacity)) == []


def test_min_size_above_capacity() -> None:
    config = config_with(replay__min_size=11, replay__capacity=10)
    assert replay_problems(config) == [
        "replay.min_size: 11 cannot work; allowed: at most replay.capacity (10), or sampling never starts"
    ]


@pytest.mark.parametrize("updates", [1e-6, 1e6])
@pytest.mark.parametrize("batch_size", [1, 2**63 - 1])
def test_extreme_update_ratios_give_finite_rate_limits(updates: float, batch_size: int) -> None:
    """1e308 updates, or 1e-320, made infinite numbers of Reverb's terms."""
    for buffer in (None, 1e12):
        config = config_with(
            replay__updates_per_env_step=updates, replay__error_buffer=buffer, learn__batch_size=batch_size
        )
        assert replay_problems(config) == []
        limit = plan_rate_limit(config, Experience(), MAX_ROWS)
        assert limit.samples_per_insert is not None
        assert math.isfinite(limit.samples_per_insert)
        assert math.isfinite(limit.error_buffer)


@pytest.mark.parametrize(("layout", "most"), [("packed", MAX_ROWS * (2**31 - 1)), ("trajectory", 2**31 - 1)])
def test_a_capacity_above_reverbs_table_size_is_refused(layout: str, most: int) -> None:
    def found(capacity: int) -> list[str]:
        config = config_with(replay__layout=layout, replay__capacity=capacity)
        return replay_problems(config)

    assert found(most) == []
    assert found(most + 1) == [
        f"replay.capacity: {most + 1} cannot work; allowed: at most {most} with replay.layout "
        f"{layout}: a table has 2147483647 items"
    ]


def test_an_error_buffer_that_would_deadlock_is_refused() -> None:
    config = config_with(replay__updates_per_env_step=1.0, replay__error_buffer=4.0)
    (problem,) = replay_problems(config)
    allowed = f"at least {MAX_ROWS} env steps"
    assert problem.startswith(f"replay.error_buffer: 4.0 cannot work; allowed: {allowed}")


@pytest.mark.parametrize(
    ("agent", "keys", "least"),
    [
        ({}, {"replay__transitions_per_item": 4}, 4),
        ({"priority_exponent": 0.6}, {}, 1),
        ({"lstm_units": 4, "sequence_length": 80, "sequence_stride": 80}, {}, 80),
    ],
)
def test_the_rate_limiter_needs_room_for_one_item(agent, keys, least) -> None:
    def found(buffer: float) -> list[str]:
        config = config_with(**keys, replay__updates_per_env_step=1.0, replay__error_buffer=buffer)
        return replay_problems(dataclasses.replace(config, agent=DqnConfig(**agent)))

    assert found(least) == []
    (problem,) = found(least - 0.5)
    assert problem.startswith(f"replay.error_buffer: {least - 0.5} cannot work; allowed: at least ")
    assert f" {least} env steps" in problem


def test_a_stride_above_the_sequence_length_is_refused() -> None:
    agent = DqnConfig(lstm_units=4, sequence_length=20, sequence_stride=21)
    (problem,) = replay_problems(dataclasses.replace(Config(), agent=agent))
    assert problem.startswith("agent.sequence_stride: 21 cannot work; allowed: at most ")


@pytest.mark.parametrize(
    ("broken", "left"),
    [
        ("learn.batch_size", ["replay.min_size"]),
        ("replay.capacity", ["replay.error_buffer"]),
        ("replay.error_buffer", ["replay.min_size"]),
    ],
)
def test_checks_that_depend_on_refused_keys_are_skipped(broken: str, left: list[str]) -> None:
    config = config_with(replay__capacity=1, replay__updates_per_env_step=1.0, replay__error_buffer=1.0)
    found = [problem.partition(":")[0] for problem in replay_problems(config, {broken})]
    assert found == left


@pytest.mark.parametrize(
    ("agent", "learn", "problem"),
    [
        ({"env_steps_per_iteration": 100}, {}, "agent.env_steps_per_iteration: 100 cannot work"),
        ({}, {"batch_size": 48}, "learn.batch_size: 48 cannot work"),
        ({}, {"train_steps": 81}, "learn.train_steps: 81 cannot work"),
        ({}, {"strategy": "multi_worker_mirrored"}, 'learn.strategy: "multi_worker_mirrored" cannot work'),
        ({"lstm_units": 4}, {"batch_size": 16, "train_steps": 160}, "learn.batch_size: 16 cannot work"),
        ({"lstm_units": 4}, {"strategy": "mirrored:2"}, 'learn.strategy: "mirrored:2" cannot work'),
        ({}, {"strategy": "mirrored:16"}, 'learn.strategy: "mirrored:16" cannot work'),
    ],
)
def test_invalid_iterations_are_refused(agent: dict[str, Any], learn: dict[str, Any], problem: str) -> None:
    """256 env steps are 8 fragments of 32, and with minibatches of 32 an iteration has 80 train steps."""
    steps = {"env_steps_per_iteration": 256, "fragment_length": 32, **agent}
    config = Config(
        agent=PpoConfig(**steps), learn=LearnConfig(**{"batch_size": 32, "train_steps": 80, **learn})
    )
    (line, *_) = replay_problems(config)
    assert line.startswith(problem), line


@pytest.mark.parametrize("agent", [{}, {"lstm_units": 4}])
def test_valid_iterations_are_accepted(agent: dict[str, Any]) -> None:
    ppo = PpoConfig(env_steps_per_iteration=256, fragment_length=32, **agent)
    learn = LearnConfig(batch_size=64, train_steps=80, strategy="mirrored:2")
    assert replay_problems(Config(agent=ppo, learn=learn)) == []


@pytest.mark.parametrize(
    ("actors", "envs_per_actor", "works"),
    [(2, 4, True), (1, 8, True), (3, 1, False), (2, 8, False), (None, 3, True), (3, None, True)],
)
def test_an_iteration_is_a_multiple_of_the_fragments_of_all_actors(
    actors: int | None, envs_per_actor: int | None, works: bool
) -> None:
    """An iteration of 256 env steps is 8 fragments of 32. Without a number of actors it is not known here."""
    agent = PpoConfig(env_steps_per_iteration=256, fragment_length=32)
    collect = CollectConfig(actors=actors, envs_per_actor=envs_per_actor)
    config = Config(agent=agent, collect=collect, learn=LearnConfig(batch_size=32, train_steps=80))
    found = replay_problems(config)
    together = 32 * (actors or 1) * (envs_per_actor or 1)
    problem = (
        f"agent.env_steps_per_iteration: 256 cannot work; allowed: a multiple of {together}, "
        "agent.fragment_length x collect.actors x collect.envs_per_actor"
    )
    assert found == [problem] * (not works)
    for key in ("collect.actors", "collect.envs_per_actor"):
        assert replay_problems(config, {key}) == []


@pytest.mark.parametrize("name", _EXAMPLES)
def test_examples_are_configurations(name: str) -> None:
    load_config(str(REPOSITORY / "examples" / name), checks=(replay_problems,))


@pytest.mark.parametrize("name", shipped_configs())
def test_a_file_with_all_keys_of_a_run_is_a_configuration(tmp_path: Path, name: str) -> None:
    """Ray's actors get one, and `sweep` writes one."""
    config = load_config(name)
    (tmp_path / "all.yaml").write_text(to_yaml(config))
    assert load_config(str(tmp_path / "all.yaml"), checks=(replay_problems,)) == config


@pytest.mark.parametrize(
    ("key", "value", "shown", "default"),
    [
        ("replay.capacity", "5", "5", "1000000"),
        ("replay.transitions_per_item", "1", "1", "null"),
        ("collect.initial_policy", "my_module:act", '"my_module:act"', "null"),
    ],
)
def test_on_policy_runs_refuse_keys_without_effect(key: str, value: str, shown: str, default: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_config("ppo_cartpole", [f"{key}={value}"], (replay_problems,))
    (line,) = refused.value.problems
    assert line.startswith(f"{key}: {shown} cannot work ")
    assert line.endswith(f"allowed: its default {default}: agent.name ppo consumes its experience once")
