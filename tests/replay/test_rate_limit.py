"""The arithmetic of the rate limiter, against a model of Reverb's rules."""

import dataclasses
import itertools
from typing import Any

import pytest

from actorlearner.agents.experience import Experience, Iteration
from actorlearner.config.schema import CollectConfig, Config, LearnConfig, ReplayConfig
from actorlearner.replay.checks import replay_problems
from actorlearner.replay.item_size import MAX_ROWS, max_transitions_per_item
from actorlearner.replay.rate_limit import RateLimit, items, max_items, min_error_buffer, plan_rate_limit


def config_with(batch_size: int = 256, actors: int = 1, **replay: Any) -> Config:
    return Config(
        replay=ReplayConfig(**replay),
        learn=LearnConfig(batch_size=batch_size),
        collect=CollectConfig(actors=actors),
    )


def refused_keys(config: Config) -> list[str]:
    return [problem.partition(":")[0] for problem in replay_problems(config)]


@dataclasses.dataclass
class ReverbModel:
    """Reverb's SampleToInsertRatio: which of inserting and sampling it lets through."""

    limit: RateLimit
    inserts: int = 0
    samples: int = 0

    def insert(self) -> bool:
        if self.inserts >= self.limit.min_size and not self._keeps(self.inserts + 1, self.samples):
            return False
        self.inserts += 1
        return True

    def sample(self) -> bool:
        if self.inserts < self.limit.min_size or not self._keeps(self.inserts, self.samples + 1):
            return False
        self.samples += 1
        return True

    def _keeps(self, inserts: int, samples: int) -> bool:
        assert self.limit.samples_per_insert is not None
        middle = self.limit.min_size * self.limit.samples_per_insert
        difference = inserts * self.limit.samples_per_insert - samples
        return abs(difference - middle) <= self.limit.error_buffer + 1e-9


def exhaust(step: Any, most: int) -> int:
    return sum(1 for _ in itertools.takewhile(bool, (step() for _ in range(most))))


def never_deadlocks(limit: RateLimit) -> bool:
    """Whether both sides continue after each in turn has gone as far ahead as it may."""
    model = ReverbModel(limit)
    most = 100_000
    return all(exhaust(model.insert, most) + exhaust(model.sample, most) for _ in range(4))


@pytest.mark.parametrize(("transitions", "expected"), [(1, 1), (16, 1), (17, 2), (1_600, 100), (1_601, 101)])
def test_items_are_rounded_up(transitions: int, expected: int) -> None:
    assert items(transitions, 16) == expected
    assert items(transitions, 1) == transitions


def test_without_a_ratio_only_the_minimum_size_counts() -> None:
    assert plan_rate_limit(config_with(min_size=1_600), Experience(), 16) == RateLimit(100, None, 0.0)


def test_ratio_and_buffer_in_items() -> None:
    limit = plan_rate_limit(
        config_with(min_size=160, updates_per_env_step=0.5, error_buffer=32.0), Experience(), 16
    )
    assert limit == RateLimit(min_size=10, samples_per_insert=128.0, error_buffer=256.0)


def test_ratio_and_buffer_in_items_of_single_transitions() -> None:
    config = config_with(min_size=80, updates_per_env_step=0.5, error_buffer=16.0)
    limit = RateLimit(min_size=80, samples_per_insert=128.0, error_buffer=2048.0)
    assert plan_rate_limit(config, Experience(), 1) == limit


def test_a_sequence_is_sampled_for_each_env_step_of_its_stride() -> None:
    config = config_with(min_size=80, updates_per_env_step=0.5, error_buffer=16.0)
    limit = plan_rate_limit(config, Experience(length=8, stride=4), 4)
    assert limit == RateLimit(min_size=20, samples_per_insert=512.0, error_buffer=2048.0)


def test_experience_that_is_consumed_once_is_a_queue() -> None:
    iteration = Iteration(env_steps=24, epochs=3, max_policy_lag=1)
    experience = Experience(length=4, stride=4, iteration=iteration)
    assert plan_rate_limit(Config(), experience, 4) == RateLimit(1, 1.0, error_buffer=24)
    assert max_items(Config(), experience, 4) == 48


@pytest.mark.parametrize(
    ("size", "buffered_items"), [(64, (2, 2, 4, 32)), (16, (4, 4, 4, 32)), (1, (64,) * 4)]
)
def test_default_buffer_is_an_item_of_each_actor(size: int, buffered_items: tuple[int, ...]) -> None:
    buffers = [
        plan_rate_limit(config_with(updates_per_env_step=1.0, actors=actors), Experience(), size).error_buffer
        for actors in (1, 2, 4, 32)
    ]
    assert buffers == [256 * count for count in buffered_items]


@pytest.mark.parametrize("batch_size", [1, 3, 256])
@pytest.mark.parametrize("updates_per_env_step", [0.001, 0.1, 1 / 3, 1.0, 7.3])
@pytest.mark.parametrize("buffer", ["default", "least"])
@pytest.mark.parametrize(("layout", "size"), [("packed", MAX_ROWS), ("packed", 5), ("trajectory", 1)])
def test_accepted_settings_never_deadlock(
    batch_size: int, updates_per_env_step: float, buffer: str, layout: str, size: int
) -> None:
    settings = {"updates_per_env_step": updates_per_env_step, "min_size": 20, "layout": layout}
    config = config_with(batch_size=batch_size, **settings)
    if buffer == "least":
        least = min_error_buffer(max_transitions_per_item(layout), updates_per_env_step * batch_size)
        config = config_with(batch_size=batch_size, error_buffer=least, **settings)
    assert replay_problems(config) == []
    assert never_deadlocks(plan_rate_limit(config, Experience(), size))


def test_the_model_finds_a_deadlock() -> None:
    config = config_with(updates_per_env_step=1.0, error_buffer=3.0, min_size=20)
    assert replay_problems(config) != []
    assert not never_deadlocks(plan_rate_limit(config, Experience(), MAX_ROWS))


@pytest.mark.parametrize("updates_per_env_step", [0.001, 0.5, 1.0, 20.0])
def test_the_least_buffer_is_the_smallest_accepted_one(updates_per_env_step: float) -> None:
    least = min_error_buffer(MAX_ROWS, updates_per_env_step * 256)
    for error_buffer, expected in ((least, []), (least * 0.999, ["replay.error_buffer"])):
        config = config_with(updates_per_env_step=updates_per_env_step, error_buffer=error_buffer)
        assert refused_keys(config) == expected


def test_least_buffer_is_one_item_or_one_sample() -> None:
    assert min_error_buffer(16, 256.0) == 16
    assert min_error_buffer(16, 0.25) == 4 * 16
    assert min_error_buffer(1, 256.0) == 1


def test_buffer_without_a_ratio_limits_nothing() -> None:
    assert replay_problems(config_with(error_buffer=0.1)) == []


def test_all_problems_are_reported_at_once() -> None:
    config = config_with(min_size=12, capacity=11, updates_per_env_step=1.0, error_buffer=4.0)
    assert refused_keys(config) == ["replay.min_size", "replay.error_buffer"]
