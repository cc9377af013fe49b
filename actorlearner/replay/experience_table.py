"""Makes the experience table."""

import reverb

from actorlearner.config.schema import Config
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.rate_limit import RateLimit, max_items, plan_rate_limit


def experience_table(config: Config, layout: ReplayLayout) -> reverb.Table:
    """Returns the experience table; it is a queue if each unit is consumed once."""
    experience, env_steps_per_item = layout.experience, layout.env_steps_per_item
    sampler = reverb.selectors.Uniform()
    if experience.iteration:
        sampler = reverb.selectors.Fifo()
    elif experience.priorities:
        sampler = reverb.selectors.Prioritized(experience.priorities.exponent)
    return reverb.Table(
        name=layout.table,
        sampler=sampler,
        remover=reverb.selectors.Fifo(),
        max_size=max_items(config, experience, env_steps_per_item),
        max_times_sampled=1 if experience.iteration else 0,
        rate_limiter=_rate_limiter(plan_rate_limit(config, experience, env_steps_per_item)),
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
