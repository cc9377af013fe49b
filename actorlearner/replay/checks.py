"""Checks of a configuration's replay section against Reverb's tables and rate limiter."""

from collections.abc import Collection

from actorlearner.config.checks import cannot_work
from actorlearner.config.problems import Sources
from actorlearner.config.schema import Config
from actorlearner.replay.item_size import MAX_ITEMS, max_transitions_per_item
from actorlearner.replay.rate_limit import min_error_buffer


def replay_problems(config: Config, sources: Sources, broken: Collection[str] = ()) -> list[str]:
    """Returns one line for each key that no table has room for, or with which the run would deadlock.

    Args:
      config: the configuration.
      sources: where the given keys come from.
      broken: keys that were refused already; checks that depend on them are skipped.
    """
    problems: list[str] = []
    replay, batch_size = config.replay, config.learn.batch_size
    # An upper bound for any environment: large observations get fewer transitions into an item.
    per_item = max_transitions_per_item(replay.layout)

    def refuse(key: str, allowed: str, *others: str) -> None:
        if not {key, *others}.intersection(broken):
            problems.append(cannot_work(config, key, sources, allowed))

    if replay.capacity > MAX_ITEMS * per_item:
        most = f"at most {MAX_ITEMS * per_item} with replay.layout {replay.layout}"
        refuse("replay.capacity", f"{most}: a table has {MAX_ITEMS} items", "replay.layout")
    if replay.min_size > replay.capacity:
        allowed = f"at most replay.capacity ({replay.capacity}), or sampling never starts"
        refuse("replay.min_size", allowed, "replay.capacity")
    if replay.updates_per_env_step is not None and replay.error_buffer is not None:
        least = min_error_buffer(per_item, replay.updates_per_env_step * batch_size)
        if replay.error_buffer < least:
            allowed = (
                f"at least {least:g} env steps with these updates_per_env_step and batch_size, or collecting "
                "and training deadlock"
            )
            refuse("replay.error_buffer", allowed, "replay.updates_per_env_step", "learn.batch_size")
    return problems
