"""Checks of keys against each other."""

import pytest

from actorlearner.config.checks import can_be_looked_up, cross_problems, mirrored_replicas
from actorlearner.config.problems import closest, with_source
from actorlearner.config.schema import Config, EnvironmentConfig
from tests.support.configs import config_with


def test_defaults_work() -> None:
    assert cross_problems(Config()) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("replay.capacity: 7 is much", "; allowed: 3"),
        ("replay.capacity: 7 is much", "; did you mean 3?"),
        ("replay.capacity: 7 is much", "; did you mean 3 or 4? allowed: less"),
        ("replay.capacity: 7, not 3 as seed: very", ""),
        ('replay.capacity: "a; allowed: b" is no number', "; allowed: 3"),
        ('replay.capacity: "a; allowed: b" is no number', "; did you mean 3? allowed: less"),
        ("replay.capacity.x: 7 cannot work", "; allowed: a list"),
        ("replay.capacity.x: y.z: 7 cannot work", "; allowed: a list"),
    ],
)
def test_a_source_is_added_to_what_was_found_without_one(before: str, after: str) -> None:
    sources = {"replay.capacity": "exp.yaml:3", "seed": "default"}
    assert with_source(before + after, sources) == f"{before} (exp.yaml:3){after}"
    assert with_source(before + after, {"seed": "default"}) == before + after


@pytest.mark.parametrize(
    "line",
    ["--run_dir: seed: 7 cannot be; allowed: y", "seed.x: unknown key", "seeds: 3", "learn: 3"],
)
def test_a_line_that_does_not_begin_with_a_key_gets_no_source(line: str) -> None:
    assert with_source(line, {"seed": "default", "learn.xla": "default"}) == line


def test_a_key_with_all_words_is_close_and_closest_if_it_ends_with_them() -> None:
    names = "gamma", "learning_rate_decay", "actor_learning_rate", "target_update_tau"
    keys = [f"agent.{name}" for name in names]
    assert closest("agent.tau", keys) == ["agent.target_update_tau"]
    assert closest("learning_rate", keys, 2) == ["agent.actor_learning_rate", "agent.learning_rate_decay"]
    assert closest("agent.gama", keys) == ["agent.gamma"]
    assert closest("agent.ent_coef", keys[:1]) == []


@pytest.mark.parametrize(
    "strategy",
    ["default", "mirrored", "multi_worker_mirrored", "tpu", "mirrored:1", "mirrored:2", "mirrored:64"],
)
def test_strategies(strategy: str) -> None:
    assert cross_problems(config_with(learn__strategy=strategy)) == []


@pytest.mark.parametrize(
    "strategy",
    ["", "Default", "mirrored:", "mirrored:0", "mirrored:65", "mirrored:-1", "mirrored:2.0", "mirrored: 2",
     "mirrored:²", "mirrored:9999999999", "gpu"],
)  # fmt: skip
def test_unknown_strategies(strategy: str) -> None:
    (problem,) = cross_problems(config_with(learn__strategy=strategy))
    assert problem.startswith(f'learn.strategy: unknown strategy "{strategy}"; ')
    assert problem.endswith(
        "allowed: default, mirrored, multi_worker_mirrored, tpu, or mirrored:N with N from 1 to 64"
    )


def test_strategy_with_a_typing_error() -> None:
    (problem,) = cross_problems(config_with(learn__strategy="mirored"))
    assert "did you mean mirrored?" in problem


def test_batch_that_the_replicas_do_not_divide() -> None:
    config = config_with(learn__strategy="mirrored:3")
    assert cross_problems(config) == [
        "learn.batch_size: 256 cannot work; allowed: a multiple of the 3 replicas of learn.strategy"
    ]
    assert cross_problems(config_with(learn__strategy="mirrored:3", learn__batch_size=255)) == []


def test_xla_is_for_one_device() -> None:
    assert cross_problems(config_with(learn__xla=True)) == []
    assert cross_problems(config_with(learn__xla=True, learn__strategy="mirrored")) == [
        "learn.xla: true cannot work; allowed: false with learn.strategy mirrored"
    ]


def test_replicas() -> None:
    assert mirrored_replicas("mirrored:12") == 12
    assert mirrored_replicas("mirrored") is None
    assert mirrored_replicas("default") is None


@pytest.mark.parametrize("suite", ["my_module:make", "a.b_c.d1:Environment", "gym", "pybullet"])
def test_suites(suite: str) -> None:
    config = config_with(environment__suite=suite)
    assert cross_problems(config) == []
    assert can_be_looked_up(config.environment)


@pytest.mark.parametrize(
    "suite",
    ["", "Gym", "module", "module:", ":make", "a b:make", "a:b:c", "1a:make", "a..b:c", "a.:c", "a:b.c"],
)
def test_unknown_suites(suite: str) -> None:
    config = config_with(environment__suite=suite)
    (problem,) = cross_problems(config)
    assert problem.startswith(f'environment.suite: unknown suite "{suite}"; ')
    assert problem.endswith("allowed: pybullet, gym, gymnasium, dm_control, or module:callable for your own")
    assert not can_be_looked_up(config.environment)


def test_suite_with_a_typing_error() -> None:
    (problem,) = cross_problems(config_with(environment__suite="PyBulet"))
    assert "did you mean pybullet?" in problem


def test_empty_environment_name() -> None:
    for suite in ("gym", "pybullet"):
        (problem,) = cross_problems(config_with(environment__suite=suite, environment__name=""))
        assert problem.startswith('environment.name: "" cannot work; ')
    assert cross_problems(config_with(environment__suite="m:f", environment__name="")) == []
    assert can_be_looked_up(EnvironmentConfig(suite="m:f", name=""))


@pytest.mark.parametrize(
    ("broken", "left"),
    [
        ("learn.batch_size", ["environment.suite"]),
        ("learn.strategy", ["environment.suite"]),
        ("environment.suite", ["learn.batch_size"]),
    ],
)
def test_checks_that_depend_on_invalid_keys_are_skipped(broken: str, left: list[str]) -> None:
    config = config_with(environment__suite="none", learn__strategy="mirrored:3")
    found = [problem.partition(":")[0] for problem in cross_problems(config, {broken})]
    assert found == left


def test_metrics_of_info_name_a_key_once() -> None:
    metrics = ["energy", "sum:energy", "max:energy"]
    assert cross_problems(config_with(environment__info_metrics=metrics)) == []
    (twice, nameless, empty) = cross_problems(config_with(environment__info_metrics=["x", "x", "sum:", ""]))
    assert twice == 'environment.info_metrics: "x" is given twice; allowed: each only once'
    allowed = "allowed: KEY, sum:KEY or mean:KEY"
    assert nameless == f'environment.info_metrics: "sum:" names no key; {allowed}'
    assert empty == f'environment.info_metrics: "" names no key; {allowed}'


@pytest.mark.parametrize(("values", "shown"), [(8080, "8080"), ("abc", '"abc"'), ([], "[]"), (None, "null")])
def test_actor_kwargs_must_be_lists(values: object, shown: str) -> None:
    kwargs = {"port": values, "colour": ["red"]}
    config = config_with(collect__actor_kwargs=kwargs)
    assert cross_problems(config) == [
        f"collect.actor_kwargs.port: {shown} cannot work; allowed: a list with a value for each actor"
    ]
    assert cross_problems(config, {"collect.actor_kwargs"}) == []
