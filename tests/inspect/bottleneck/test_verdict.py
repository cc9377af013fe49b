"""Verdicts from fractions of the time."""

import pytest

from actorlearner.inspect.bottleneck.verdict import Bottleneck, find_bottlenecks, verdict_lines
from actorlearner.inspect.bottleneck.waits import (
    ENVIRONMENTS,
    LIMITER,
    POLICY,
    PUBLISHING,
    SAMPLING,
    SAVING,
    TRAINING,
    VARIABLES,
    WRITING,
    Waits,
)

_ACTORS = (ENVIRONMENTS, POLICY, WRITING, LIMITER, VARIABLES)
_LEARNER = (TRAINING, SAMPLING, LIMITER, PUBLISHING, SAVING)


def actors(**parts: float) -> dict[str, float]:
    return dict.fromkeys(_ACTORS, 0.0) | {name.replace("_", " "): value for name, value in parts.items()}


def learner(**parts: float) -> dict[str, float]:
    return dict.fromkeys(_LEARNER, 0.0) | {name.replace("_", " "): value for name, value in parts.items()}


def names(waits: Waits, updates_per_env_step: float | None = 1.0) -> list[str]:
    return [each.name for each in find_bottlenecks(waits, updates_per_env_step)]


@pytest.mark.parametrize("part", [TRAINING, SAMPLING, PUBLISHING, SAVING])
def test_the_learners_part_where_the_actors_wait(part: str) -> None:
    others = {TRAINING: 0.2} | {part: 0.7}
    waits = Waits(actors(environments=0.35, rate_limiter=0.62), learner(**others, rate_limiter=0.05))
    [bottleneck] = find_bottlenecks(waits, 2.0)
    assert bottleneck.name == part
    assert "70 % of the time" in bottleneck.why
    assert bottleneck.why.endswith("the actors wait 62 % of their time for the rate limiter")
    assert bottleneck.advice.endswith("or lower replay.updates_per_env_step (2)")


@pytest.mark.parametrize("part", [ENVIRONMENTS, POLICY, WRITING, VARIABLES])
def test_the_actors_part_where_the_learner_waits(part: str) -> None:
    others = {ENVIRONMENTS: 0.2} | {part: 0.7}
    waits = Waits(actors(**others, rate_limiter=0.05), learner(training=0.3, rate_limiter=0.6))
    [bottleneck] = find_bottlenecks(waits, 0.5)
    assert bottleneck.name == part
    assert "70 % of the time" in bottleneck.why
    assert "the learner waits 60 %" in bottleneck.why
    assert bottleneck.advice.endswith("or raise replay.updates_per_env_step (0.5)")


def test_the_rate_limiter_where_both_wait_for_long() -> None:
    waits = Waits(actors(environments=0.6, rate_limiter=0.4), learner(training=0.7, rate_limiter=0.3))
    [bottleneck] = find_bottlenecks(waits, 1.0)
    assert bottleneck.name == LIMITER
    assert "replay.error_buffer" in bottleneck.advice


def test_both_sides_where_neither_waits_for_long() -> None:
    waits = Waits(actors(environments=0.9, rate_limiter=0.04), learner(training=0.9, rate_limiter=0.05))
    assert names(waits) == [ENVIRONMENTS, TRAINING]


def test_both_sides_without_a_rate_limit() -> None:
    waits = Waits(actors(policy=0.9), learner(sampling=0.5, training=0.4))
    assert names(waits, None) == [POLICY, SAMPLING]


@pytest.mark.parametrize(
    ("learner_waits", "expected"),
    [
        (
            0.74,
            "policy: the actors run policy inference 16 % of the time, the learner waits 74 % of its time",
        ),
        (0.3, "training: the learner trains 20 % of the time, the actors wait 48 % of their time for the"),
    ],
)
def test_the_side_waited_for_longer_if_experience_is_consumed_once(
    learner_waits: float, expected: str
) -> None:
    """The sides take turns, so that both wait for long."""
    waits = Waits(
        actors(policy=0.16, environments=0.15, rate_limiter=0.48),
        learner(training=0.2, rate_limiter=learner_waits),
    )
    why, advice = verdict_lines(find_bottlenecks(waits, None, consumed_once=True))
    assert why.startswith(expected)
    assert "raise agent.max_policy_lag" in advice


@pytest.mark.parametrize(
    "waits",
    [
        *(Waits(actors() | {part: 0.9}, None) for part in _ACTORS),
        *(Waits(None, learner() | {part: 0.9}) for part in _LEARNER),
    ],
)
def test_advice_names_no_key_that_is_refused_where_experience_is_consumed_once(waits: Waits) -> None:
    [bottleneck] = find_bottlenecks(waits, None, consumed_once=True)
    for key in ("updates_per_env_step", "error_buffer", "publish_interval", "replay.layout"):
        assert key not in bottleneck.advice


def test_both_sides_where_policies_may_lag_and_neither_waits() -> None:
    waits = Waits(actors(environments=0.9, rate_limiter=0.04), learner(training=0.9, rate_limiter=0.05))
    found = find_bottlenecks(waits, None, consumed_once=True)
    assert [each.name for each in found] == [ENVIRONMENTS, TRAINING]


def test_one_side_without_records_of_the_other() -> None:
    assert names(Waits(actors(environments=0.9), None)) == [ENVIRONMENTS]
    assert names(Waits(None, learner(training=0.3, rate_limiter=0.6))) == [LIMITER]
    assert names(Waits(None, None)) == []


def test_lines_say_why_and_what_to_do() -> None:
    assert verdict_lines([Bottleneck("training", "it trains", "do that")]) == [
        "training: it trains",
        "  do that",
    ]
