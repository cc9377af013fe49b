"""What the experience takes, before there is any: memory of the replay server, and room for its checkpoints.

The figures of memory, and what they were measured on, are in item_memory.py.
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
"""What a role's process holds before it has any experience: the libraries, the environment and the agent.

530 to 550 MB were measured for a replay server, a collect actor and an eval actor, and 730 MB for a learner;
280 MB of each are the libraries' files, which they share.
"""

# Bytes of a checkpoint beside the data.
_ITEM_ON_DISK = 30
_REFERENCE_ON_DISK = 3
_STEP_ON_DISK = 16


def experience_bytes(capacity: int, layout: ReplayLayout) -> int:
    """Memory of the replay server for `capacity` transitions, beside its PROCESS_BYTES.

    In the trajectory layout, each episode also has its last time step, once for each env step of an n-step
    transition. That is left out: it counts only where episodes are not much longer than n.
    """
    return items(capacity, layout.transitions_per_item) * _item_bytes(layout)


def checkpoint_bytes(capacity: int, layout: ReplayLayout) -> int:
    """Room that one checkpoint of `capacity` transitions takes on a disk."""
    columns = sum(_STEP_ON_DISK + data + _REFERENCE_ON_DISK * steps for steps, data in _columns(layout))
    return items(capacity, layout.transitions_per_item) * (_ITEM_ON_DISK + columns)


def largest_capacity(memory_bytes: int, layout: ReplayLayout) -> int:
    """How many transitions fit into so much memory, rounded down to two digits."""
    return fitting(memory_bytes, _item_bytes(layout), layout.transitions_per_item)


def check_memory(config: Config, layout: ReplayLayout, saved: int | None = None) -> None:
    """Refuses a capacity that no table has, or that would not fit into the memory that is available now.

    Call it in a process that has everything loaded but the experience: only that is still to come. A run that
    has begun keeps its capacity: if that does not fit any more, as after the other roles have grown, it is
    only said, as long as what is to be restored fits.

    Args:
      config: the experiment.
      layout: of its replay.
      saved: transitions that are to be restored; None in a new run.

    Raises:
      ConfigurationError: it cannot be; the problem does not say where the key comes from.
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
