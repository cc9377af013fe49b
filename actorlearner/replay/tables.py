"""The tables of the replay server."""

from collections.abc import Sequence

import reverb

from actorlearner.config.schema import Config
from actorlearner.replay.checkpoints import ReplayCheckpoints
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.rate_limit import RateLimit, items, plan_rate_limit


def experience_table(config: Config, layout: ReplayLayout) -> reverb.Table:
    """Returns the experience table: sampled uniformly, oldest items removed first."""
    return reverb.Table(
        name=layout.table,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=items(config.replay.capacity, layout.transitions_per_item),
        rate_limiter=_rate_limiter(plan_rate_limit(config, layout.transitions_per_item)),
        signature=layout.signature,
    )


def _rate_limiter(limit: RateLimit) -> reverb.rate_limiters.RateLimiter:
    if limit.samples_per_insert is None:
        return reverb.rate_limiters.MinSize(limit.min_size)
    return reverb.rate_limiters.SampleToInsertRatio(
        samples_per_insert=limit.samples_per_insert,
        min_size_to_sample=limit.min_size,
        error_buffer=limit.error_buffer,
    )


def start_server(
    tables: Sequence[reverb.Table], port: int, checkpoints: ReplayCheckpoints | None = None
) -> reverb.Server:
    """Starts a server of `tables` on `port`; returns when it listens and has restored its checkpoint."""
    checkpointer = checkpoints.restoring_checkpointer() if checkpoints else None
    return reverb.Server(tables=list(tables), port=port, checkpointer=checkpointer)
