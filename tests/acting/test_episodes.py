"""Complete episodes."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from actorlearner.acting import episodes
from actorlearner.config.schema import Config, EnvironmentConfig, EvaluateConfig
from actorlearner.process.heartbeat import LONG_PATIENCE_S
from actorlearner.process.stop import Stop


def test_an_episode_that_does_not_end_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(episodes, "_LONG_EPISODE", 20)
    stop = Stop()
    steps: list[float] = []

    def step(action: np.ndarray) -> Any:
        steps.append(float(action))
        if len(steps) == 60:
            stop.request()
        return SimpleNamespace(observation=np.zeros(2), last=False, reward=1.0, info={})

    environment: Any = SimpleNamespace(reset=lambda: np.zeros(2), step=step)
    assert episodes.play_episodes(Config(), [environment], lambda *_: np.zeros((1, 1)), 1, stop) is None
    assert len(steps) == 60
    warning = "an episode has lasted 20 env steps and goes on; environment.max_episode_steps"
    assert caplog.text.count(warning) == 1


class Numbered:
    """Episode k of environment j has `lengths[j][k]` env steps; reward and energy are the step's number."""

    def __init__(self, j: int, lengths: list[int], failing: tuple[int, ...] = ()) -> None:
        self.j, self.lengths, self.failing = j, iter(lengths), failing
        self.resets = 0

    def reset(self) -> np.ndarray:
        self.resets += 1
        self.length, self.steps = next(self.lengths), 0
        return np.array([self.j, 0.0])

    def step(self, action: np.ndarray) -> Any:
        assert list(action) == [self.j, self.steps]  # The action for this environment's observation.
        self.steps += 1
        if self.resets in self.failing:
            return None
        return SimpleNamespace(
            observation=np.array([self.j, self.steps]),
            last=self.steps == self.length,
            reward=float(self.steps),
            info={"energy": self.steps},
        )


def played(
    environments: list[Any], count: int, max_steps: int | None = None
) -> list[tuple[float, int, bool]]:
    calls: list[list[bool]] = []

    def policy(observations: np.ndarray, first: np.ndarray) -> np.ndarray:
        calls.append(first.tolist())
        assert first.tolist() == [step == 0 for _, step in observations]
        return observations

    config = Config(evaluate=EvaluateConfig(max_steps=max_steps))
    found = episodes.play_episodes(config, environments, policy, count, Stop())  # type: ignore[arg-type]
    assert found is not None
    assert all(len(first) == len(environments) for first in calls)
    return [(each.episode_return, each.length, each.cut_off) for each in found]


def test_each_environment_plays_its_own_episodes_in_the_order_of_their_numbers() -> None:
    """Episode i belongs to environment i modulo their number, however short the other ones are."""
    environments = [Numbered(0, [1, 1, 1]), Numbered(1, [5, 2])]
    assert [length for _, length, _ in played(environments, 5)] == [1, 5, 1, 2, 1]
    assert [environment.resets for environment in environments] == [3, 2]


def test_an_episode_that_fails_is_replaced_in_its_environment() -> None:
    environments = [Numbered(0, [3, 2], failing=(1,)), Numbered(1, [4])]
    assert played(environments, 2) == [(3.0, 2, False), (10.0, 4, False)]


def test_long_episodes_are_cut_off_with_their_return_so_far() -> None:
    environments = [Numbered(0, [3, 9]), Numbered(1, [4, 5])]
    assert played(environments, 4, max_steps=4) == [
        *((6.0, 3, False), (10.0, 4, False), (10.0, 4, True), (10.0, 4, True)),
    ]


def test_a_slow_reset_may_take_longer_than_other_steps(patience_s: Callable[[], float]) -> None:
    """A simulator's reset may take minutes, during which the eval actor writes no heartbeat."""
    environment: Any = Numbered(0, [2, 1])
    reset, found = environment.reset, list[float]()

    def slow_reset() -> np.ndarray:
        found.append(patience_s())
        return reset()

    environment.reset = slow_reset
    played([environment], 2)
    assert found == [LONG_PATIENCE_S] * 2


def test_episodes_have_their_info() -> None:
    environment: Any = Numbered(0, [3])
    policy: Any = lambda observation, first: observation  # noqa: E731
    config = Config(environment=EnvironmentConfig(info_metrics=["energy", "sum:energy"]))
    (episode,) = episodes.play_episodes(config, [environment], policy, 1, Stop()) or []
    assert episode.info == {"energy": 3.0, "sum:energy": 6.0}
