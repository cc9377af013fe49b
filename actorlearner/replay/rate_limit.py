"""Converts `replay.updates_per_env_step` to the settings of Reverb's rate limiter.

Reverb counts items; the configuration counts env steps. The layout determines the transitions per item, a
train step uses `batch_size` transitions, and one env step makes one transition, so

    samples per insert (SPI) = updates_per_env_step x batch_size

holds in items as it does in transitions. Reverb keeps inserts x SPI - samples within

    min_size x SPI +/- error_buffer        (in sampled items)

and blocks sampling below min_size items. With sequences, SPI is `stride` times as large: one sequence is
inserted every `stride` env steps, and a train step uses `batch_size` sequences. Experience that is consumed
once is a queue, with an SPI of 1.
"""

import dataclasses
import math

from actorlearner.agents.experience import Experience, Iteration
from actorlearner.config.schema import Config
from actorlearner.process.cores import collect_actors

_MIN_DEFAULT_BUFFER = 64
"""In env steps."""


def items(env_steps: int, env_steps_per_item: int) -> int:
    """Returns the number of items that this number of env steps fills, rounded up."""
    return math.ceil(env_steps / env_steps_per_item)


@dataclasses.dataclass(frozen=True)
class RateLimit:
    """The settings of the experience table's rate limiter, all in items.

    Attributes:
      min_size: items in the table before the first sample.
      samples_per_insert: sampled items for each inserted item; None limits by `min_size` alone.
      error_buffer: sampled items by which either side may run ahead; 0 if SPI is None.
    """

    min_size: int
    samples_per_insert: float | None
    error_buffer: float


def min_error_buffer(env_steps_per_item: int, samples_per_insert: float) -> float:
    """Returns the smallest error buffer, in env steps, that cannot deadlock.

    In both directions, Reverb needs room for one insert (which is SPI samples) and for one sample.
    """
    return env_steps_per_item * max(1.0, 1.0 / samples_per_insert)


def plan_rate_limit(config: Config, experience: Experience, env_steps_per_item: int) -> RateLimit:
    """Returns the rate limiter's settings for a configuration without `replay_problems`."""
    if iteration := experience.iteration:
        size = _queue_items(iteration, env_steps_per_item)
        return RateLimit(min_size=1, samples_per_insert=1.0, error_buffer=size)
    replay = config.replay
    min_size = items(replay.min_size, env_steps_per_item)
    if replay.updates_per_env_step is None:
        return RateLimit(min_size, None, 0.0)
    samples_per_insert = replay.updates_per_env_step * config.learn.batch_size * experience.stride
    buffer = replay.error_buffer
    if buffer is None:
        wanted = max(_MIN_DEFAULT_BUFFER, env_steps_per_item * max(2, collect_actors(config.collect)))
        buffer = max(wanted, min_error_buffer(env_steps_per_item, samples_per_insert))
    error_buffer = buffer / env_steps_per_item * samples_per_insert
    return RateLimit(min_size, samples_per_insert, error_buffer)


def max_items(config: Config, experience: Experience, env_steps_per_item: int) -> int:
    """Returns the items that the experience table has room for."""
    if iteration := experience.iteration:
        # Twice the queue: inserts that the limiter has already accepted must not remove unsampled items.
        return 2 * _queue_items(iteration, env_steps_per_item)
    return items(config.replay.capacity, env_steps_per_item)


def _queue_items(iteration: Iteration, env_steps_per_item: int) -> int:
    """Returns the items that may wait for the learner, before inserts are blocked.

    The queue has room for twice the items that are recent enough: older items leave it only when sampled.
    """
    return 2 * (1 + iteration.max_policy_lag) * items(iteration.env_steps, env_steps_per_item)
