"""What the experience takes, before there is any: memory of the replay server, and room for its checkpoints.

The figures are upper bounds, but close ones: for data that cannot be compressed, in a table that is full, was
turned over several times and is saved. Reverb compresses what it stores, so repetitive data (pictures of a
game) may take much less; how much shows only in the run, when it is too late to refuse.

They were measured with Reverb 0.14.0, as the growth of a server's process from a tenth of its capacity on,
filled with random bytes by the layouts' own writers in long episodes:

- packed: vectors of 1 to 5,000 numbers, and pictures of 64x64x3 and 84x84x4 bytes; up to 500 MB of rows. A
  server held 1.04 to 1.13 times the bytes of rows, more of the tiniest, and 1.25 times in the worst case, a
  table of 100 MB that was turned over a dozen times.
- trajectory: the same, mappings of 12 vectors, and n-step transitions of 3 and 10 env steps. Its items are
  small, and what they take is nearly all Reverb's bookkeeping: 3,400 bytes for 32 of data.
- saving: the first two to four checkpoints made the server grow by 0.6 to 9 kB for each item, later ones no
  more.

The estimate without its part for saving was 0.88 to 1.12 times what was measured without saving.
"""

import math
from typing import Any

import tree

from actorlearner.available_memory import available_bytes
from actorlearner.config.problems import problem
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.rate_limit import items

_MIB = 2**20
_GIB = 2**30

PROCESS_BYTES = 512 * _MIB
"""What a role's process holds before it has any experience: the libraries, the environment and the agent.

530 to 550 MB were measured for a replay server, a collect actor and an eval actor, and 730 MB for a learner;
280 MB of each are the libraries' files, which they share.
"""

# Bytes of the server's memory.
_ITEM = 100
_REFERENCE = 25
"""An item's reference to one step of one column."""
_SMALL_STEP = 520
_STEP = 1_160
"""Bookkeeping of one step of one column, beside the data; less for the smallest arrays."""
_LARGEST_SMALL_STEP = 32
_ALLOCATED = 1.1
"""Bytes that the allocator takes for one of data, with the holes in a table that was turned over."""
_SAVED_ITEM = 1_900
_SAVED_REFERENCE = 110
"""What saving takes for an item and for each of its references; the allocator keeps it for the next time."""

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
    steps = sum(_STEP_ON_DISK + data for data in _column_steps(layout))
    item = _ITEM_ON_DISK + _REFERENCE_ON_DISK * _references(layout) + steps
    return items(capacity, layout.transitions_per_item) * item


def largest_capacity(memory_bytes: int, layout: ReplayLayout) -> int:
    """How many transitions fit into so much memory, rounded down to two digits."""
    fitting = max(0, memory_bytes) // _item_bytes(layout) * layout.transitions_per_item
    unit = 10 ** max(0, len(str(fitting)) - 2)
    return fitting // unit * unit


def check_memory(config: Config, layout: ReplayLayout) -> None:
    """Refuses a capacity whose transitions would not fit into the memory that is available now.

    Call it in a process that has everything loaded but the experience: only that is still to come. What an
    earlier process has saved makes no difference, since the capacity bounds it, too.

    Raises:
      ConfigurationError: they do not fit.
    """
    capacity = config.replay.capacity
    needed, available = experience_bytes(capacity, layout), available_bytes()
    if needed <= available:
        return
    wrong = f"{capacity} transitions may need {size(needed)} of memory, and {size(available)} is available"
    allowed = f"at most {largest_capacity(available, layout)} with this environment on this machine"
    raise ConfigurationError([problem("replay.capacity", wrong, "", allowed)])


def size(number_of_bytes: float) -> str:
    """Bytes in GiB, or in MiB where they are few, for people."""
    if number_of_bytes >= 0.1 * _GIB:
        return f"{number_of_bytes / _GIB:,.1f} GiB"
    return f"{number_of_bytes / _MIB:.1f} MiB"


def _item_bytes(layout: ReplayLayout) -> int:
    """Memory that one item takes, with the one step of each column that comes with it."""
    references = _references(layout)
    steps = sum(
        (_SMALL_STEP if data <= _LARGEST_SMALL_STEP else _STEP) + _ALLOCATED * data
        for data in _column_steps(layout)
    )
    saved = _SAVED_ITEM + _SAVED_REFERENCE * references
    return math.ceil(_ITEM + _REFERENCE * references + steps + saved)


def _column_steps(layout: ReplayLayout) -> list[int]:
    """Bytes of one step of each column. Items share their other steps with those before."""
    return [math.prod(spec.shape[1:]) * spec.dtype.size for spec in _columns(layout)]


def _references(layout: ReplayLayout) -> int:
    """How many steps an item has, over all its columns."""
    return sum(int(spec.shape[0]) for spec in _columns(layout))


def _columns(layout: ReplayLayout) -> list[Any]:
    return tree.flatten(layout.item_specs)
