"""Plays whole episodes with a policy."""

from typing import NamedTuple

import numpy as np
import tree

from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.environments.guarded import GuardedEnvironment
from actorlearner.process.heartbeat import beat
from actorlearner.process.stop import Stop
from actorlearner.records.notify import warn

_LONG_EPISODE = 50_000
"""Env steps of an episode that may never end: a policy may learn to avoid its end."""


class Episode(NamedTuple):
    """A complete episode.

    Attributes:
      episode_return: undiscounted sum of all rewards.
      length: env steps.
    """

    episode_return: float
    length: int


class EpisodeInPlay:
    """An episode, played one env step at a time.

    Attributes:
      episode_return: undiscounted sum of the rewards so far.
      length: env steps so far.
      over: whether the episode has ended.
      failed: whether it ended because the environment failed.
    """

    def __init__(self, environment: GuardedEnvironment, policy: PolicyFunction) -> None:
        """Resets the environment; the policy takes batches of one."""
        self._environment = environment
        self._policy = policy
        self._observation = environment.reset()
        self.episode_return, self.length = 0.0, 0
        self.over = self.failed = False

    def step(self) -> None:
        """Takes the next env step.

        Raises:
          RunError: the environment failed too often in a row.
        """
        batch = tree.map_structure(lambda leaf: np.asarray(leaf)[None], self._observation)
        actions = self._policy(batch, np.array([self.length == 0]))
        step = self._environment.step(tree.map_structure(lambda leaf: leaf[0], actions))
        if step is None:
            self.over = self.failed = True
            return
        self._observation, self.over = step.observation, step.last
        self.episode_return += step.reward
        self.length += 1


def play_episode(environment: GuardedEnvironment, policy: PolicyFunction, stop: Stop) -> Episode | None:
    """Plays one whole episode; returns None if `stop` is requested between two env steps.

    An episode in which the environment fails is discarded and replaced by another.

    Raises:
      RunError: the environment failed too often in a row.
    """
    while True:
        episode = EpisodeInPlay(environment, policy)
        while not episode.over:
            if stop.requested:
                return None
            beat("playing, env step", episode.length)
            episode.step()
            if episode.length == _LONG_EPISODE:
                warn(
                    f"an episode has lasted {_LONG_EPISODE:,} env steps and goes on; "
                    "environment.max_episode_steps limits episodes"
                )
        if not episode.failed:
            return Episode(episode.episode_return, episode.length)


def play_episodes(
    environment: GuardedEnvironment, policy: PolicyFunction, episodes: int, stop: Stop
) -> list[Episode] | None:
    """Plays `episodes` whole episodes, as `play_episode` does; returns None at a stop."""
    played: list[Episode] = []
    while len(played) < episodes:
        episode = play_episode(environment, policy, stop)
        if episode is None:
            return None
        played.append(episode)
    return played
