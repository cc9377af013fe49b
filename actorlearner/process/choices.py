"""What a configuration leaves open and the machine decides: from the cores that this process may use.

The configuration keeps its nulls, so that its fingerprint is the same on every machine; each role asks here.
"""

import math
import os

from actorlearner.config.schema import CollectConfig

_ENVIRONMENTS = 8
"""Environments of all the actors together, where nothing else is configured.

With so many in one process, asking the policy costs little beside stepping them. The number does not grow
with the cores, because it changes what is learned: short runs would end in the middle of first episodes.
"""


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


def collect_actors(config: CollectConfig) -> int:
    """Collect actors of a local run: `collect.actors`, else one for every two cores, eight at most.

    The other half of the cores is the learner's and the replay server's.
    """
    if config.actors is not None:
        return config.actors
    return max(1, min(cores() // 2, _ENVIRONMENTS))


def envs_per_actor(config: CollectConfig) -> int:
    """Environments of one actor: `collect.envs_per_actor`, else an equal share of _ENVIRONMENTS."""
    if config.envs_per_actor is not None:
        return config.envs_per_actor
    return math.ceil(_ENVIRONMENTS / collect_actors(config))


def describe(config: CollectConfig) -> str:
    """One line: what this machine has, and what runs on it because of that."""
    actors = collect_actors(config)
    environments = _count(envs_per_actor(config), "environment") + (" each" if actors > 1 else "")
    return (
        f"{_count(cores(), 'core')}: {_count(actors, 'collect actor')} with {environments}, "
        f"learner on {_count(cores(), 'thread')}"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
