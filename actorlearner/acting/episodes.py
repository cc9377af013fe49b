"""Plays whole episodes with a policy."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.config.schema import Config
from actorlearner.environments.batch import stack, unstack
from actorlearner.environments.environment import Nest
from actorlearner.environments.guarded import GuardedEnvironment
from actorlearner.environments.info import EpisodeInfo
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat, patience_after
from actorlearner.process.stop import Stop
from actorlearner.records.notify import warn

_LONG_EPISODE = 50_000
"""Env steps after which a warning is logged: a policy may have learned to avoid the episode's end."""


class PlayedEpisode(NamedTuple):
    """A complete episode.

    Attributes:
      episode_return: undiscounted sum of all rewards.
      length: env steps.
      info: the metrics of `environment.info_metrics` by name; those without a value are left out.
      cut_off: whether it was ended after a maximum number of env steps, not by the environment.
    """

    episode_return: float
    length: int
    info: Mapping[str, float] = {}
    cut_off: bool = False


class EpisodeInPlay:
    """An episode, played one env step at a time.

    Attributes:
      observation: the newest one.
      episode_return: undiscounted sum of the rewards so far.
      length: env steps so far.
      over: whether the episode has ended, or was cut off.
      failed: whether it ended because the environment failed.
    """

    def __init__(
        self,
        environment: GuardedEnvironment,
        max_steps: int | None = None,
        info_metrics: Sequence[str] = (),
    ) -> None:
        """Resets the environment.

        Args:
          environment: where it is played.
          max_steps: env steps after which the episode is cut off; None for no limit.
          info_metrics: the metrics of `environment.info_metrics`.

        Raises:
          RunError: the environment failed too often in a row.
        """
        self._environment = environment
        self._max_steps = max_steps
        self._info = EpisodeInfo(info_metrics)
        beat("resetting an environment", patience_s=LONG_PATIENCE_S)
        self.observation: Nest = environment.reset()
        self.episode_return, self.length = 0.0, 0
        self.over = self.failed = self._cut_off = False

    def act(self, action: Nest) -> None:
        """Takes the next env step.

        Raises:
          RunError: the environment failed too often in a row.
        """
        step = self._environment.step(action)
        if step is None:
            self.over = self.failed = True
            return
        self.observation = step.observation
        self.episode_return += step.reward
        self.length += 1
        self._cut_off = self.length == self._max_steps and not step.last
        self.over = step.last or self._cut_off
        self._info.add(step.info)
        if self.length == _LONG_EPISODE:
            warn(
                f"an episode has lasted {_LONG_EPISODE:,} env steps and goes on; "
                "environment.max_episode_steps limits episodes"
            )

    def result(self) -> PlayedEpisode:
        """Returns the episode once it is over; call it once."""
        return PlayedEpisode(self.episode_return, self.length, self._info.take(), self._cut_off)


def play_episodes(
    config: Config,
    environments: Sequence[GuardedEnvironment],
    policy: PolicyFunction,
    episodes: int,
    stop: Stop,
) -> list[PlayedEpisode] | None:
    """Plays whole episodes, one in each of N environments at a time, with one policy call for all.

    Environment j plays the episodes j, j + N, j + 2N, ...: a fixed choice, because taking the first episodes
    to end would favour short ones. If an environment fails, its episode is discarded and played again.

    Args:
      config: the experiment; `evaluate.max_steps` cuts episodes off.
      environments: N of them, at most `episodes`.
      policy: for batches of N.
      episodes: number of episodes.
      stop: checked between two env steps.

    Returns:
      The episodes by number; None at a stop.

    Raises:
      RunError: an environment failed too often in a row.
    """
    max_steps, info_metrics = config.evaluate.max_steps, config.environment.info_metrics
    count = len(environments)
    in_play = [EpisodeInPlay(environment, max_steps, info_metrics) for environment in environments]
    played: list[list[PlayedEpisode]] = [[] for _ in environments]
    slowest_s: float | None = None
    while sum(map(len, played)) < episodes:
        if stop.requested:
            return None
        beat("playing, env step", max(episode.length for episode in in_play), patience_after(slowest_s))
        began = time.monotonic()
        batch = stack([episode.observation for episode in in_play])
        actions = unstack(policy(batch, np.array([episode.length == 0 for episode in in_play])))
        for j, action in enumerate(actions):
            wanted = len(range(j, episodes, count))
            if len(played[j]) == wanted:  # This environment has played its episodes.
                continue
            in_play[j].act(action)
            if in_play[j].over and not in_play[j].failed:
                played[j].append(in_play[j].result())
            if in_play[j].over and len(played[j]) < wanted:
                in_play[j] = EpisodeInPlay(environments[j], max_steps, info_metrics)
        slowest_s = max(slowest_s or 0.0, time.monotonic() - began)
    return [played[number % count][number // count] for number in range(episodes)]
