"""Makes the experience table."""

import reverb

from actorlearner.config.schema import Config
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.rate_limit import RateLimit, max_items, rate_limit_of


def experience_table(config: Config, layout: ReplayLayout) -> reverb.Table:
    """Returns the experience table; it is a queue if each unit is consumed once."""
    iteration, priorities = layout.experience.iteration, layout.experience.priorities
    sampler = reverb.selectors.Uniform()
    if iteration:
        sampler = reverb.selectors.Fifo()
    elif priorities:
        sampler = reverb.selectors.Prioritized(priorities.exponent)
    return reverb.Table(
        name=layout.table,
        sampler=sampler,
        remover=reverb.selectors.Fifo(),
        max_size=max_items(config, layout),
        max_times_sampled=1 if iteration else 0,
        rate_limiter=_rate_limiter(rate_limit_of(config, layout)),
        signature=layout.signature,
    )


def _rate_limiter(limit: RateLimit) -> reverb.rate_limiters.RateLimiter:
    if limit.samples_per_insert is None:
        return reverb.rate_limiters.MinSize(limit.min_size)
    return reverb.rate_limiters.SampleToInsertRatio(
        samples_per_insert=limit.samples_per_insert,
        min_size_to_sample=limit.min_size,
        # Slightly larger: Reverb checks it against its own minimum, which rounding may make larger than ours.
        error_buffer=limit.error_buffer * (1 + 1e-6),
    )
