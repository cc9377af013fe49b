"""A batch of environments, and the statistics of their episodes."""

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tree

from actorlearner.environments.environment import EnvSteps, Nest, Step
from actorlearner.environments.guarded import GuardedEnvironment
from actorlearner.environments.info import EpisodeInfo, average_info, info_of_episodes
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat


class EnvironmentBatch:
    """Steps several environments, and resets those whose episodes ended.

    Attributes:
      observations: nest of arrays [environments, ...], the observations to act on next.
      first: bool [environments], whether each is the first of its episode.
    """

    def __init__(
        self, environments: Sequence[GuardedEnvironment], cut_after: Sequence[int] | None = None
    ) -> None:
        """Resets all environments.

        Args:
          environments: at least one.
          cut_after: for each environment, the env steps after which its current episode is truncated, once,
            so that the environments do not stay in step; None: never.
        """
        self._environments = list(environments)
        self._steps_left = np.array(cut_after or [0] * len(environments))
        self.observations = stack([self._first_observation(i) for i in range(len(self._environments))])
        self.first = np.ones(len(self._environments), dtype=np.bool_)

    def step(self, actions: Nest, policy_train_step: int) -> EnvSteps:
        """Takes one env step in each environment; environments in separate processes step in parallel.

        Args:
          actions: nest of arrays [environments, ...].
          policy_train_step: train step of the variables that chose the actions.
        """
        observation, first = self.observations, self.first
        pairs = list(zip(self._environments, unstack(actions), strict=True))
        for environment, action in pairs:
            environment.send(action)
        answers = [environment.step(action) for environment, action in pairs]
        steps = [answer or self._given_up(i) for i, answer in enumerate(answers)]
        next_observation = stack([step.observation for step in steps])
        ended = np.array([step.last for step in steps], dtype=np.bool_)
        cut = self._cut() & ~ended
        last = ended | cut
        self.first = last
        self.observations = self._reset(steps, last) if last.any() else next_observation
        rejected = np.array([step.rejected for step in steps], dtype=np.bool_)
        if rejected.any():
            next_observation = tree.map_structure(
                lambda before, after: np.where(_like(rejected, after), before, after),
                observation,
                next_observation,
            )
        return EnvSteps(
            observation=observation,
            first=first,
            action=actions,
            reward=np.array([step.reward for step in steps], dtype=np.float32),
            discount=np.array([step.discount for step in steps], dtype=np.float32),
            next_observation=next_observation,
            last=last,
            policy_train_step=np.full(len(steps), policy_train_step, np.int64),
            valid=~rejected,
            cut=cut,
            info=[step.info for step in steps],
        )

    def _first_observation(self, i: int) -> Nest:
        beat(f"resetting environment {i}", patience_s=LONG_PATIENCE_S)
        return self._environments[i].reset()

    def _cut(self) -> npt.NDArray[np.bool_]:
        """Returns for each environment whether its episode is cut off at this env step."""
        self._steps_left -= 1
        return self._steps_left == 0

    def _given_up(self, i: int) -> Step:
        """Returns a rejected last Step, for an environment that failed, so that a reset follows."""
        observation = tree.map_structure(lambda leaf: leaf[i], self.observations)
        return Step(observation, 0.0, 1.0, last=True, rejected=True)

    def _reset(self, steps: Sequence[Step], last: npt.NDArray[np.bool_]) -> Nest:
        """Resets the environments whose episodes ended; returns the next observations of all."""
        return stack(
            [self._first_observation(i) if last[i] else step.observation for i, step in enumerate(steps)]
        )

    @property
    def faults(self) -> int:
        """Number of faults of all environments together."""
        return sum(environment.faults for environment in self._environments)

    def close(self) -> None:
        """Closes all environments."""
        for environment in self._environments:
            environment.close()


def _like(flags: npt.NDArray[np.bool_], leaf: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Returns flags [environments] in a shape that broadcasts against a leaf [environments, ...]."""
    return flags.reshape(-1, *[1] * (leaf.ndim - 1))


def stack(nests: Sequence[Nest]) -> Nest:
    """Returns a nest of arrays [len(nests), ...]."""
    return tree.map_structure(lambda *leaves: np.stack(leaves), *nests)


def unstack(actions: Nest) -> Iterable[Nest]:
    """Inverts `stack`: returns one nest for each index of the first dimension."""
    if isinstance(actions, np.ndarray):  # The common case: iterating over an array is faster.
        return actions
    leaves = zip(*tree.flatten(actions), strict=True)
    return (tree.unflatten_as(actions, parts) for parts in leaves)


class EpisodeStatistics:
    """Average return and length of the newest episodes of an actor's environments."""

    def __init__(
        self,
        environments: int,
        window: int = 10,
        ended: Callable[[int, float, int, Mapping[str, float]], None] = lambda *episode: None,
        info_metrics: Sequence[str] = (),
    ) -> None:
        """Starts without episodes.

        Args:
          environments: number of environments.
          window: number of episodes to average over, at least one per environment.
          ended: called after each episode with the environment's index, the undiscounted return, the
            length in env steps, and its metrics of `info`.
          info_metrics: the metrics of `environment.info_metrics`.
        """
        self._ended = ended
        self._return = np.zeros(environments, dtype=np.float64)
        self._length = np.zeros(environments, dtype=np.int64)
        size = max(window, environments)
        self._returns: collections.deque[float] = collections.deque(maxlen=size)
        self._lengths: collections.deque[int] = collections.deque(maxlen=size)
        self._info_metrics = info_metrics
        self._info = [EpisodeInfo(info_metrics) for _ in range(environments)]
        self._infos: collections.deque[Mapping[str, float]] = collections.deque(maxlen=size)
        self.episodes = 0

    def add(self, steps: EnvSteps) -> None:
        """Adds one env step of each environment.

        It leaves out episodes that the actor cut off, and episodes whose last env step is not valid.
        """
        self._return += steps.reward
        self._length += 1
        if self._info_metrics:
            for info, added in zip(self._info, steps.info, strict=True):
                info.add(added)
        left_out = steps.last & (~steps.valid | steps.cut)
        if left_out.any():
            self._return[left_out] = 0.0
            self._length[left_out] = 0
            for i in np.flatnonzero(left_out):
                self._info[i].clear()
        for i in np.flatnonzero(steps.last & ~left_out):
            self._returns.append(float(self._return[i]))
            self._lengths.append(int(self._length[i]))
            self._infos.append(self._info[i].take())
            self._ended(int(i), self._returns[-1], self._lengths[-1], self._infos[-1])
            self._return[i] = 0.0
            self._length[i] = 0
            self.episodes += 1

    @property
    def average_return(self) -> float | None:
        """Mean undiscounted return; None before the end of the first episode."""
        return float(np.mean(self._returns)) if self._returns else None

    @property
    def average_episode_length(self) -> float | None:
        """Mean length in env steps; None before the end of the first episode."""
        return float(np.mean(self._lengths)) if self._lengths else None

    @property
    def average_info(self) -> dict[str, float | None]:
        """Mean of each metric of `info` over the episodes that have it; None if none has."""
        return average_info(info_of_episodes(self._info_metrics, self._infos))
