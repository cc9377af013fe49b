"""The command: plays episodes with a saved policy and says what came of them."""

from collections.abc import Sequence
from typing import TextIO

import numpy as np
import tensorflow as tf

from actorlearner.acting.episodes import Episode, play_episode
from actorlearner.acting.policy_source import PolicySource
from actorlearner.acting.saved_policy import load_policy
from actorlearner.environments.guarded import GuardedEnvironment, load_guarded
from actorlearner.environments.specs import load_specs
from actorlearner.errors import EXIT_FINISHED
from actorlearner.process.devices import use_cpu
from actorlearner.process.stop import Stop
from actorlearner.records.digits import decimals


def run_rollout(source: PolicySource, episodes: int, seed: int, out: TextIO) -> int:
    """Plays and prints; returns the exit code.

    Args:
      source: the policy, and the experiment that it is from.
      episodes: how many.
      seed: of the environments, of each episode another.
      out: where it is printed.

    Raises:
      ConfigurationError: the policy or the environment cannot be loaded.
      RunError: the environment failed too often in a row.
    """
    use_cpu(threads=1)
    tf.random.set_seed(seed)
    policy = load_policy(source, load_specs(source.config.environment))
    print(title(source, policy.train_step), file=out)
    played, stop = [], Stop()
    for number in range(episodes):
        environment = episode_environment(source, seed, number)
        episode = play_episode(environment, policy.function, stop)
        environment.close()
        assert episode is not None  # Nothing requests a stop.
        print(episode_line(number, episode), file=out)
        played.append(episode)
    print(mean_line(played), file=out)
    return EXIT_FINISHED


def episode_environment(source: PolicySource, seed: int, number: int) -> GuardedEnvironment:
    """A new environment for one episode, with random numbers that depend on `seed` and `number` alone."""
    return load_guarded(source.config.environment, seed, "rollout", number, 0)


def title(source: PolicySource, train_step: int) -> str:
    """Says what is played."""
    what = "the greedy policy of" if source.is_checkpoint else "policy"
    environment = source.config.environment
    return f"{what} {source.path}, train step {train_step:,}, in {environment.name or environment.suite}"


def episode_line(number: int, episode: Episode) -> str:
    """Says what came of an episode; `number` counts from 0."""
    return (
        f"Episode #{number}: reward: {episode.reward:.{decimals(episode.reward)}f}, length: {episode.length}"
    )


def mean_line(played: Sequence[Episode]) -> str:
    """Means and standard deviations over all episodes, those of a population: 0 for a single one."""
    rewards, lengths = (np.array(column, np.float64) for column in zip(*played, strict=True))
    digits = decimals(rewards.mean(), rewards.std())
    return (
        f"mean of {len(played)}: reward: {rewards.mean():.{digits}f} ± {rewards.std():.{digits}f}, "
        f"length: {lengths.mean():.1f} ± {lengths.std():.1f}"
    )
