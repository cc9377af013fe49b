"""Values for keys that are null in a configuration, computed from the cores that this process may use.

The configuration keeps its nulls, so that its fingerprint is the same on every machine.
"""

import math
import os

from actorlearner.config.schema import CollectConfig
from actorlearner.records.formatting import plural

_ENVIRONMENTS = 8
"""Default number of environments of all actors together.

With so many in one process, the policy costs little compared to stepping them. The number does not grow with
the cores, because it changes what is learned: short runs would end in the middle of their first episodes.
"""


def cores() -> int:
    """Returns the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


def collect_actors(config: CollectConfig) -> int:
    """Returns `collect.actors`, or a local run's default: one actor per two cores, at most eight.

    The other half of the cores is left to the learner and the replay server.
    """
    if config.actors is not None:
        return config.actors
    return max(1, min(cores() // 2, _ENVIRONMENTS))


def envs_per_actor(config: CollectConfig) -> int:
    """Returns `collect.envs_per_actor`, or an actor's share of eight environments, rounded up."""
    if config.envs_per_actor is not None:
        return config.envs_per_actor
    return math.ceil(_ENVIRONMENTS / collect_actors(config))


def describe(config: CollectConfig) -> str:
    """Returns a line with the machine's cores and what runs on them."""
    actors = collect_actors(config)
    environments = plural(envs_per_actor(config), "environment") + (" each" if actors > 1 else "")
    return (
        f"{plural(cores(), 'core')}: {plural(actors, 'collect actor')} with {environments}, "
        f"learner on {plural(cores(), 'thread')}"
    )
