"""The average return and length of an actor's newest episodes."""

import collections
from collections.abc import Sequence

import numpy as np

from actorlearner.callbacks.callback import Episode
from actorlearner.environments.environment import EnvSteps
from actorlearner.environments.info import EpisodeInfo, average_info, info_of_episodes


class RecentEpisodes:
    """Average return and length of the newest episodes of an actor's environments.

    Attributes:
      episodes: number of complete episodes.
    """

    def __init__(self, environments: int, window: int = 10, info_metrics: Sequence[str] = ()) -> None:
        """Starts without episodes.

        Args:
          environments: number of environments.
          window: number of episodes to average over, at least one per environment.
          info_metrics: the metrics of `environment.info_metrics`.
        """
        self._return = np.zeros(environments, dtype=np.float64)
        self._length = np.zeros(environments, dtype=np.int64)
        self._info_metrics = info_metrics
        self._info = [EpisodeInfo(info_metrics) for _ in range(environments)]
        self._newest: collections.deque[Episode] = collections.deque(maxlen=max(window, environments))
        self.episodes = 0

    def add(self, steps: EnvSteps, env_steps: int = 0) -> list[Episode]:
        """Adds one env step of each environment, and returns the episodes that it completed.

        It leaves out episodes that the actor cut off, and episodes whose last env step is not valid.

        Args:
          steps: the env steps.
          env_steps: `Episode.env_steps` of the completed episodes.
        """
        self._return += steps.reward
        self._length += 1
        if self._info_metrics:
            for info, added in zip(self._info, steps.info, strict=True):
                info.add(added)
        left_out = ~steps.valid | steps.cut
        completed = []
        for i in np.flatnonzero(steps.last):
            if left_out[i]:
                self._info[i].clear()
            else:
                completed.append(self._episode(int(i), env_steps, int(steps.policy_train_step[i])))
            self._return[i] = 0.0
            self._length[i] = 0
        self._newest.extend(completed)
        self.episodes += len(completed)
        return completed

    def _episode(self, i: int, env_steps: int, train_step: int) -> Episode:
        episode_return, length, info = float(self._return[i]), int(self._length[i]), self._info[i].take()
        return Episode(i, episode_return, length, env_steps, train_step, info)

    @property
    def average_return(self) -> float | None:
        """Mean undiscounted return; None before the end of the first episode."""
        return float(np.mean([each.episode_return for each in self._newest])) if self._newest else None

    @property
    def average_episode_length(self) -> float | None:
        """Mean length in env steps; None before the end of the first episode."""
        return float(np.mean([each.length for each in self._newest])) if self._newest else None

    @property
    def average_info(self) -> dict[str, float | None]:
        """Mean of each of the `info_metrics` over the episodes that have it; None if none has."""
        return average_info(info_of_episodes(self._info_metrics, [each.info for each in self._newest]))
