"""Checks of a configuration's replay section that need the arithmetic of items and rate limits."""

from collections.abc import Collection

from actorlearner.config.checks import cannot_work
from actorlearner.config.problems import Sources
from actorlearner.config.schema import Config
from actorlearner.replay.item_size import MAX_ITEMS, max_transitions_per_item
from actorlearner.replay.rate_limit import rate_limit_problems

_RATE_LIMIT_INPUTS = {
    "replay.min_size": {"replay.min_size", "replay.capacity"},
    "replay.error_buffer": {"replay.error_buffer", "replay.updates_per_env_step", "learn.batch_size"},
}


def replay_problems(config: Config, sources: Sources, broken: Collection[str] = ()) -> list[str]:
    """Returns one line for each key that no table or rate limiter of Reverb can satisfy.

    Args:
      config: the configuration.
      sources: where the given keys come from.
      broken: keys that were refused already; checks that depend on them are skipped.
    """
    problems = []
    layout = config.replay.layout
    if not {"replay.capacity", "replay.layout"}.intersection(broken):
        # An upper bound for any environment: large observations get fewer transitions into an item.
        max_capacity = MAX_ITEMS * max_transitions_per_item(layout)
        if config.replay.capacity > max_capacity:
            allowed = f"at most {max_capacity} with replay.layout {layout}: a table has {MAX_ITEMS} items"
            problems.append(cannot_work(config, "replay.capacity", sources, allowed))
    for key, allowed in rate_limit_problems(config):
        if not _RATE_LIMIT_INPUTS[key].intersection(broken):
            problems.append(cannot_work(config, key, sources, allowed))
    return problems
