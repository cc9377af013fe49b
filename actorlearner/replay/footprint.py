"""Estimates the memory and the disk space that the experience will take.

The measured figures are in item_memory.py.
"""

import math

import tree

from actorlearner.config.problems import problem
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.process.memory import available_bytes
from actorlearner.records.notify import warn
from actorlearner.replay.item_memory import Column, fitting, item_bytes, size
from actorlearner.replay.item_size import MAX_ITEMS
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.rate_limit import items

PROCESS_BYTES = 512 * 2**20
"""Bytes of a role's process before it has any experience: the libraries, the environment and the agent.

Measured: 530 to 550 MB for a replay server, a collect actor and an eval actor, and 730 MB for a learner.
280 MB of each are the libraries' files, which the processes share.
"""

# Bytes of a checkpoint beside the data.
_ITEM_ON_DISK = 30
_REFERENCE_ON_DISK = 3
_STEP_ON_DISK = 16


def experience_bytes(capacity: int, layout: ReplayLayout) -> int:
    """Returns the replay server's bytes for `capacity` transitions, in addition to PROCESS_BYTES.

    The trajectory layout also stores the last time step of each episode n times. That is left out: it matters
    only if episodes are not much longer than n.
    """
    return items(capacity, layout.transitions_per_item) * _item_bytes(layout)


def checkpoint_bytes(capacity: int, layout: ReplayLayout) -> int:
    """Returns the bytes on disk of one checkpoint of `capacity` transitions."""
    columns = sum(_STEP_ON_DISK + data + _REFERENCE_ON_DISK * steps for steps, data in _columns(layout))
    return items(capacity, layout.transitions_per_item) * (_ITEM_ON_DISK + columns)


def largest_capacity(memory_bytes: int, layout: ReplayLayout) -> int:
    """Returns the transitions that fit into `memory_bytes`, rounded down to two digits."""
    return fitting(memory_bytes, _item_bytes(layout), layout.transitions_per_item)


def check_memory(config: Config, layout: ReplayLayout, saved: int | None = None) -> None:
    """Refuses a capacity that no table has, or that would not fit into the memory that is available now.

    Call it in a process that has loaded everything but the experience. A run that has begun keeps its
    capacity: if it no longer fits, because the other roles have grown, this is only a warning, as long as the
    transitions to restore fit.

    Args:
      config: the experiment.
      layout: its replay layout.
      saved: transitions to restore; None in a new run.

    Raises:
      ConfigurationError: it does not fit; the problem does not name the key's source.
    """
    capacity = config.replay.capacity
    needed, available = experience_bytes(capacity, layout), available_bytes()
    largest = min(largest_capacity(available, layout), MAX_ITEMS * layout.transitions_per_item)
    if items(capacity, layout.transitions_per_item) > MAX_ITEMS:
        wrong = f"{capacity} transitions are more than the {MAX_ITEMS} items that a table of Reverb has"
    elif needed > available:
        need = f"may need {size(needed)} of memory, and {size(available)} is available"
        wrong = f"{capacity} transitions {need}"
        if saved is not None and experience_bytes(saved, layout) <= available:
            warn(f"replay.capacity: {wrong}; the run goes on, for the {saved:,} that it has now fit")
            return
    else:
        return
    allowed = f"at most {largest} with this environment on this machine"
    raise ConfigurationError([problem("replay.capacity", wrong, "", allowed)])


def _item_bytes(layout: ReplayLayout) -> int:
    return item_bytes(_columns(layout))


def _columns(layout: ReplayLayout) -> list[Column]:
    return [
        Column(int(spec.shape[0]), math.prod(spec.shape[1:]) * spec.dtype.size)
        for spec in tree.flatten(layout.item_specs)
    ]
