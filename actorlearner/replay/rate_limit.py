"""The arithmetic between updates per env step and Reverb's rate limiter, in this one place.

Reverb counts items, people count env steps. An item holds as many transitions as its layout says, a
train step uses `batch_size` transitions, and one env step makes one transition, so

    samples per insert (SPI) = updates_per_env_step x batch_size

holds in items as it does in transitions. Reverb keeps inserts x SPI - samples within

    min_size x SPI +/- error_buffer        (in sampled items)

and bars sampling below min_size items.
"""

import dataclasses
import math

from actorlearner.config.schema import Config

ROWS_PER_ITEM = 16
"""Transitions in one item of the packed layout."""

_TRANSITIONS_PER_ITEM = {"packed": ROWS_PER_ITEM, "trajectory": 1}

_BUFFERED_ENV_STEPS = 64
"""Least default error buffer, in env steps."""


def transitions_per_item(config: Config) -> int:
    """How many transitions one item holds in the configuration's layout."""
    return _TRANSITIONS_PER_ITEM[config.replay.layout]


def items(config: Config, transitions: int) -> int:
    """The number of items that hold at least so many transitions."""
    return math.ceil(transitions / transitions_per_item(config))


@dataclasses.dataclass(frozen=True)
class RateLimit:
    """Reverb's terms for the experience table, all in items.

    Attributes:
      min_size: items in the table before the first sample.
      samples_per_insert: sampled items for each inserted one; None limits by `min_size` alone.
      error_buffer: sampled items by which either side may be ahead; 0 where SPI is None.
    """

    min_size: int
    samples_per_insert: float | None
    error_buffer: float


def least_error_buffer(config: Config, samples_per_insert: float) -> float:
    """The smallest error buffer, in env steps, with which neither side waits for the other for ever.

    Reverb needs room for one insert (SPI samples) and for one sample in each direction.
    """
    return transitions_per_item(config) * max(1.0, 1.0 / samples_per_insert)


def plan_rate_limit(config: Config) -> RateLimit:
    """Turns the replay section into Reverb's terms; assumes that `rate_limit_problems` found none."""
    replay = config.replay
    if replay.updates_per_env_step is None:
        return RateLimit(items(config, replay.min_size), None, 0.0)
    samples_per_insert = replay.updates_per_env_step * config.learn.batch_size
    buffer = replay.error_buffer
    if buffer is None:
        wanted = max(_BUFFERED_ENV_STEPS, 2 * ROWS_PER_ITEM * config.collect.actors)
        buffer = max(wanted, least_error_buffer(config, samples_per_insert))
    error_buffer = buffer / transitions_per_item(config) * samples_per_insert
    return RateLimit(items(config, replay.min_size), samples_per_insert, error_buffer)


def rate_limit_problems(config: Config) -> list[tuple[str, str]]:
    """What in the replay section would make collecting and training wait for each other for ever.

    Returns:
      (key, what is allowed) pairs, none if the limiter works.
    """
    replay = config.replay
    problems = []
    if replay.min_size > replay.capacity:
        problems.append(
            ("replay.min_size", f"at most replay.capacity ({replay.capacity}), or sampling never starts")
        )
    if replay.updates_per_env_step is not None and replay.error_buffer is not None:
        least = least_error_buffer(config, replay.updates_per_env_step * config.learn.batch_size)
        if replay.error_buffer < least:
            problems.append(
                (
                    "replay.error_buffer",
                    f"at least {least:g} env steps with these updates_per_env_step and batch_size, or "
                    "collecting and training deadlock",
                )
            )
    return problems
