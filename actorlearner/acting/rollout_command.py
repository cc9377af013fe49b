"""The command `rollout`: plays episodes with a saved policy and prints their returns and lengths."""

from collections.abc import Sequence
from typing import TextIO

import numpy as np
import tensorflow as tf

from actorlearner.acting.episodes import PlayedEpisode
from actorlearner.acting.policy_source import PolicySource
from actorlearner.acting.saved_policy import load_source, play_in_own_environment
from actorlearner.environments.specs import load_specs
from actorlearner.errors import EXIT_FINISHED
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.records.formatting import decimals, return_text


def run_rollout(source: PolicySource, episodes: int, seed: int, out: TextIO) -> int:
    """Plays episodes, prints each of them and their means, and returns the exit code.

    Args:
      source: the policy and its configuration.
      episodes: the number of episodes.
      seed: seeds the environments; each episode gets its own random numbers.
      out: the stream to print to.

    Raises:
      ConfigurationError: the policy or the environment cannot be loaded.
      RunError: the environment failed too often in a row.
    """
    limit_tensorflow(threads=1)
    tf.random.set_seed(seed)
    policy = load_source(source, load_specs(source.config.evaluated_environment))
    print(title(source, policy.train_step), file=out)
    played = []
    for number in range(episodes):
        played.append(play_in_own_environment(policy, seed, number))
        print(episode_line(number, played[-1]), file=out)
    print(mean_line(played), file=out)
    return EXIT_FINISHED


def title(source: PolicySource, train_step: int) -> str:
    """Describes the policy and its environment in one line."""
    what = "the greedy policy of" if source.is_checkpoint else "policy"
    environment = source.config.environment
    return f"{what} {source.path}, train step {train_step:,}, in {environment.name or environment.suite}"


def episode_line(number: int, episode: PlayedEpisode) -> str:
    """Formats one episode; `number` counts from 0."""
    cut_off = ", cut off" if episode.cut_off else ""
    reward = return_text(episode.episode_return)
    return f"Episode #{number}: reward: {reward}, length: {episode.length}{cut_off}"


def mean_line(played: Sequence[PlayedEpisode]) -> str:
    """Formats means and population standard deviations over all episodes."""
    returns = np.array([episode.episode_return for episode in played], np.float64)
    lengths = np.array([episode.length for episode in played], np.float64)
    digits = decimals(returns.mean(), returns.std())
    return (
        f"mean of {len(played)}: reward: {returns.mean():.{digits}f} ± {returns.std():.{digits}f}, "
        f"length: {lengths.mean():.1f} ± {lengths.std():.1f}"
    )
