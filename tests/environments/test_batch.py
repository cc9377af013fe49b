"""Several environments as one batch, and the statistics of their episodes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from actorlearner.acting.recent_episodes import RecentEpisodes
from actorlearner.callbacks.callback import Episode
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.environment import EnvSteps, Step


class Counting:
    """Observes (its index, episode, env steps in it); episodes have a fixed length.

    Every second episode is truncated, the others terminate.
    """

    faults = 0

    def __init__(self, index: int, length: int) -> None:
        self._index = index
        self._length = length
        self.episode = -1
        self.steps = 0
        self.actions: list[Any] = []
        self.closed = False

    def _observation(self) -> dict[str, np.ndarray]:
        return {
            "state": np.array([self._index, self.episode, self.steps], np.float32),
            "pixel": np.full((2, 2), self.steps, np.uint8),
        }

    def reset(self) -> dict[str, np.ndarray]:
        self.episode += 1
        self.steps = 0
        return self._observation()

    def send(self, action: dict[str, np.ndarray]) -> None:
        """The batch steps it in this process."""

    def step(self, action: dict[str, np.ndarray]) -> Step:
        assert self.steps < self._length, "stepped beyond the end of an episode"
        self.actions.append(action)
        self.steps += 1
        last = self.steps == self._length
        terminated = last and self.episode % 2 == 0
        reward = 100.0 * self._index + self.steps
        return Step(self._observation(), reward, 0.0 if terminated else 1.0, last)

    def begin_close(self) -> None:
        assert not self.closed

    def close(self) -> None:
        self.closed = True


def actions_for(batch: int, number: int) -> dict[str, np.ndarray]:
    return {
        "move": np.array([[10 * i + number, -i] for i in range(batch)], np.float32),
        "gear": np.arange(batch) + number,
    }


def test_it_begins_with_the_first_observations() -> None:
    batch = EnvironmentBatch([Counting(i, length=2) for i in range(3)])
    np.testing.assert_array_equal(batch.observations["state"], [[0, 0, 0], [1, 0, 0], [2, 0, 0]])
    assert batch.observations["state"].dtype == np.float32
    assert batch.observations["pixel"].shape == (3, 2, 2)
    assert batch.observations["pixel"].dtype == np.uint8
    assert batch.first.tolist() == [True, True, True]


def test_each_environment_is_reset_where_its_own_episode_ended() -> None:
    lengths = [1, 2, 3]
    batch = EnvironmentBatch([Counting(i, length) for i, length in enumerate(lengths)])
    for number in range(12):
        before, before_first = batch.observations, batch.first
        actions = actions_for(3, number)
        step = batch.step(actions, policy_train_step=number)
        episode = np.array([number // length for length in lengths])
        steps = np.array([number % length for length in lengths])
        ended = steps + 1 == lengths
        index = np.arange(3)
        np.testing.assert_array_equal(before["state"], np.stack([index, episode, steps], axis=1))
        # The outcome of the action: the last observation of the episode, not the first of the next one.
        np.testing.assert_array_equal(
            step.next_observation["state"], np.stack([index, episode, steps + 1], axis=1)
        )
        np.testing.assert_array_equal(step.next_observation["pixel"][:, 0, 0], steps + 1)
        # The observation to act on next: the first of the next episode where one ended.
        np.testing.assert_array_equal(
            batch.observations["state"],
            np.stack([index, episode + ended, np.where(ended, 0, steps + 1)], axis=1),
        )
        np.testing.assert_array_equal(step.observation["state"], before["state"])
        np.testing.assert_array_equal(step.first, before_first)
        assert step.action is actions
        np.testing.assert_array_equal(step.last, ended)
        np.testing.assert_array_equal(step.policy_train_step, [number] * 3)
        np.testing.assert_array_equal(batch.first, ended)
        np.testing.assert_array_equal(step.reward, 100 * index + steps + 1)
        np.testing.assert_array_equal(step.discount, np.where(ended & (episode % 2 == 0), 0, 1))
        assert (step.reward.dtype, step.discount.dtype) == (np.float32, np.float32)
        assert (step.last.dtype, step.policy_train_step.dtype) == (np.bool_, np.int64)
        assert step.valid.tolist() == [True] * 3


def test_returned_arrays_are_not_overwritten_by_later_steps() -> None:
    batch = EnvironmentBatch([Counting(0, length=2)])
    before = batch.observations
    step = batch.step(actions_for(1, 0), 0)
    batch.step(actions_for(1, 1), 0)
    assert before["state"].tolist() == [[0, 0, 0]]
    assert step.next_observation["state"].tolist() == [[0, 0, 1]]
    assert step.last.tolist() == [False]


def test_each_environment_gets_its_own_action() -> None:
    environments = [Counting(i, length=5) for i in range(3)]
    batch = EnvironmentBatch(environments)
    for number in range(2):
        batch.step(actions_for(3, number), 0)
    for i, environment in enumerate(environments):
        assert [action["gear"] for action in environment.actions] == [i, i + 1]
        np.testing.assert_array_equal(
            [action["move"] for action in environment.actions], [[10 * i, -i], [10 * i + 1, -i]]
        )


def test_close_closes_all() -> None:
    environments = [Counting(i, length=5) for i in range(3)]
    EnvironmentBatch(environments).close()
    assert all(environment.closed for environment in environments)


def run_episodes(lengths: list[int], env_steps: int, window: int = 10) -> RecentEpisodes:
    batch = EnvironmentBatch([Counting(i, length) for i, length in enumerate(lengths)])
    statistics = RecentEpisodes(len(lengths), window)
    for number in range(env_steps):
        step = batch.step(actions_for(len(lengths), number), 0)
        statistics.add(step)
    return statistics


def ends(rewards: Iterable[float], valid: bool = True) -> EnvSteps:
    """The end of an episode in each environment."""
    reward = np.array(list(rewards), np.float32)
    nothing = np.zeros_like(reward)
    every = np.ones(len(reward), np.bool_)
    return EnvSteps(nothing, every, nothing, reward, nothing, nothing, every, nothing, every & valid)


def return_of(index: int, length: int) -> float:
    return 100.0 * index * length + length * (length + 1) / 2


def test_there_is_no_average_before_the_first_episode_has_ended() -> None:
    statistics = run_episodes([5, 7], env_steps=4)
    assert (statistics.episodes, statistics.average_return, statistics.average_episode_length) == (
        0,
        None,
        None,
    )


@pytest.mark.parametrize("window", [1, 10])
def test_averages_are_over_whole_episodes_of_each_environment(window: int) -> None:
    # Environment 2 is in the middle of an episode, which is not counted. A window of fewer episodes than
    # there are environments is widened to one of each.
    statistics = run_episodes([3, 2, 4], env_steps=3, window=window)
    assert statistics.episodes == 2
    assert statistics.average_return == (return_of(0, 3) + return_of(1, 2)) / 2
    assert statistics.average_episode_length == 2.5


def test_returns_are_reset_at_each_episode() -> None:
    statistics = run_episodes([3], env_steps=9)
    assert statistics.episodes == 3
    assert statistics.average_return == return_of(0, 3)
    assert statistics.average_episode_length == 3


def test_averages_are_over_the_newest_episodes() -> None:
    statistics = RecentEpisodes(environments=1, window=2)
    for reward in (1.0, 2.0, 4.0):
        statistics.add(ends([reward]))
    assert statistics.episodes == 3
    assert statistics.average_return == 3.0


def test_one_window_holds_an_episode_of_each_environment() -> None:
    statistics = RecentEpisodes(environments=32, window=10)
    statistics.add(ends(range(32)))
    assert statistics.average_return == np.mean(np.arange(32))


class Failing(Counting):
    """Fails at every third env step."""

    def step(self, action: dict[str, np.ndarray]) -> Step | None:  # type: ignore[override]
        if len(self.actions) % 3 == 2:
            self.actions.append(action)
            self.faults += 1
            return None
        return super().step(action)


def test_an_environment_that_fails_is_reset_and_the_others_go_on() -> None:
    batch = EnvironmentBatch([Counting(0, length=10), Failing(1, length=10)])
    statistics = RecentEpisodes(2)
    for number in range(3):
        before = batch.observations
        step = batch.step(actions_for(2, number), 0)
        statistics.add(step)
    assert step.valid.tolist() == [True, False]
    np.testing.assert_array_equal(step.next_observation["state"], [[0, 0, 3], [1, 0, 2]])
    np.testing.assert_array_equal(step.next_observation["state"][1], before["state"][1])
    np.testing.assert_array_equal(batch.observations["state"], [[0, 0, 3], [1, 1, 0]])
    assert batch.first.tolist() == [False, True]
    assert batch.faults == 1
    assert statistics.episodes == 0


def test_an_aborted_episode_is_not_in_the_statistics() -> None:
    statistics = RecentEpisodes(1)
    for steps in (ends([5.0], valid=False), ends([1.0])):
        statistics.add(steps)
    assert (statistics.episodes, statistics.average_return, statistics.average_episode_length) == (
        1,
        1.0,
        1.0,
    )


class Rejecting(Counting):
    """Rejects every third action, also one at the end of an episode."""

    def step(self, action: Any) -> Step:
        step = super().step(action)
        return step._replace(reward=0.0, rejected=True) if len(self.actions) % 3 == 0 else step


def test_nothing_is_learned_from_rejected_actions() -> None:
    """The episode goes on: the next env step begins with what the environment observed."""
    batch = EnvironmentBatch([Rejecting(0, length=4), Counting(1, length=4)])
    ended: list[Episode] = []
    statistics = RecentEpisodes(2)
    for number in range(4):
        before = batch.observations
        steps = batch.step(actions_for(2, number), policy_train_step=number)
        ended += statistics.add(steps, env_steps=10 * number)
        rejected = number == 2
        assert steps.valid.tolist() == [not rejected, True]
        assert steps.last.tolist() == [number == 3] * 2
        answered = steps.next_observation["state"][:, 2].tolist()
        assert answered == [before["state"][0, 2] + (not rejected), number + 1]
        pixels = steps.next_observation["pixel"][0]
        np.testing.assert_array_equal(pixels, np.full((2, 2), answered[0], np.uint8))
        if number < 3:
            assert batch.observations["state"][:, 2].tolist() == [number + 1, number + 1]
    assert ended == [
        Episode(0, 1.0 + 2.0 + 4.0, length=4, env_steps=30, train_step=3),
        Episode(1, 101.0 + 102.0 + 103.0 + 104.0, length=4, env_steps=30, train_step=3),
    ]


def test_an_episode_that_ends_with_a_rejected_action_is_not_counted() -> None:
    batch = EnvironmentBatch([Rejecting(0, length=3)])
    statistics = RecentEpisodes(1)
    for number in range(6):
        statistics.add(batch.step(actions_for(1, number), policy_train_step=number))
        assert batch.first.tolist() == [number % 3 == 2]
    assert statistics.episodes == 0


def test_episodes_are_cut_off_once_so_that_later_ones_end_apart() -> None:
    batch = EnvironmentBatch([Counting(i, length=6) for i in range(3)], cut_after=[2, 4, 6])
    statistics = RecentEpisodes(3)
    ends: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for number in range(1, 13):
        steps = batch.step(actions_for(3, number), policy_train_step=0)
        statistics.add(steps)
        for i in np.flatnonzero(steps.last):
            ends[int(i)].append(number)
        if number == 2:
            assert steps.last.tolist() == steps.cut.tolist() == [True, False, False]
            assert steps.discount[0] == 1.0, "the value of the last state is bootstrapped"
            assert steps.next_observation["state"][0].tolist() == [0, 0, 2]
            assert batch.observations["state"][0].tolist() == [0, 1, 0]
    assert ends == {0: [2, 8], 1: [4, 10], 2: [6, 12]}
    assert statistics.episodes == 4, "all but the two that were cut off"
    assert statistics.average_episode_length == 6.0
