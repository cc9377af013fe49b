"""The average return and length of an actor's newest episodes."""

import collections
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.info import EpisodeInfo, average_info, info_of_episodes


class RecentEpisodes:
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
