"""Fractions of the time from metrics records, including records without the keys."""

from typing import Any

import pytest

from actorlearner.inspect.bottleneck.waits import (
    ENVIRONMENTS,
    LIMITER,
    POLICY,
    PUBLISHING,
    SAMPLING,
    SAVING,
    TRAINING,
    Waits,
    recent_waits,
)

NOW = 1.0e9


def actor(
    time: float, environment: float, limiter: float | None, policy_train_step: int = 5
) -> dict[str, Any]:
    return {
        "time": NOW + time,
        "policy_train_step": policy_train_step,
        "environment_fraction": environment,
        "policy_fraction": 0.1,
        "writing_fraction": 0.0,
        "rate_limiter_wait_fraction": limiter,
        "variables_fraction": 0.0,
    }


def learner(time: float, waited: float, limiter: float | None, train_step: int = 0) -> dict[str, Any]:
    return {
        "time": NOW + time,
        "train_step": train_step,
        "train_steps_per_s": 10.0,
        "data_wait_fraction": waited,
        "rate_limiter_wait_fraction": limiter,
        "publish_fraction": 0.1,
        "overhead_fraction": 0.05,
    }


def test_parts_are_means_over_time_and_over_actors() -> None:
    first = [actor(0, 0.0, 0.0), actor(2, 0.2, 0.6), actor(8, 0.6, 0.2)]
    second = [actor(0, 0.0, 0.0), actor(8, 0.7, 0.1)]
    waits = recent_waits([], [first, second])
    assert waits.learner is None
    assert waits.actors is not None
    assert waits.actors[ENVIRONMENTS] == pytest.approx(((0.2 * 2 + 0.6 * 6) / 8 + 0.7) / 2)
    assert waits.actors[LIMITER] == pytest.approx(((0.6 * 2 + 0.2 * 6) / 8 + 0.1) / 2)
    assert waits.actors[POLICY] == pytest.approx(0.1)


def test_a_wait_for_data_is_divided_between_limiter_and_sampling() -> None:
    waits = recent_waits([learner(0, 0.0, 0.0), learner(2, 0.5, 0.3)], [])
    expected = {TRAINING: 0.35, SAMPLING: 0.2, LIMITER: 0.3, PUBLISHING: 0.1, SAVING: 0.05}
    assert waits.learner == pytest.approx(expected)


def test_only_the_window_counts() -> None:
    records = [actor(0, 1.0, 0.0), actor(50, 1.0, 0.0), actor(80, 0.2, 0.0), actor(120, 0.2, 0.0)]
    waits = recent_waits([], [records])
    assert waits.actors is not None
    assert waits.actors[ENVIRONMENTS] == pytest.approx(0.2)


def test_the_actors_count_from_when_the_learner_trains() -> None:
    """After its first call the learner saves its first policies, which blocks the actors for seconds."""
    training = [learner(0, 0.9, None, train_step=10), learner(32, 0.6, 0.6, train_step=30)]
    acting = [actor(0, 0.0, 1.0), actor(28, 0.0, 1.0), actor(31, 0.8, 0.0), actor(34, 0.8, 0.0)]
    waits = recent_waits(training, [acting])
    assert waits.actors is not None
    assert waits.actors[ENVIRONMENTS] == pytest.approx(0.8)
    assert waits.learner is not None
    assert waits.learner[LIMITER] == pytest.approx(0.6)


def test_there_are_no_waits_before_the_learner_trains() -> None:
    acting = [actor(0, 0.0, 1.0), actor(2, 0.0, 1.0)]
    assert recent_waits([learner(0, 0.9, None)], [acting]) == Waits(None, None)


def test_random_actions_say_nothing_of_the_policy() -> None:
    records = [actor(0, 0.9, 0.0, -1), actor(2, 0.9, 0.0, -1), actor(4, 0.3, 0.0), actor(6, 0.3, 0.0)]
    waits = recent_waits([], [records])
    assert waits.actors is not None
    assert waits.actors[ENVIRONMENTS] == pytest.approx(0.3)


def test_records_of_earlier_versions_give_no_waits() -> None:
    old = [{"time": NOW, "env_steps": 8}, {"time": NOW + 2, "env_steps": 16}]
    assert recent_waits(old, [old]) == Waits(None, None)
    assert recent_waits([], []) == Waits(None, None)
