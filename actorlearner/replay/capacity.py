"""Estimates the replay server's memory and the size of its checkpoints; refuses a capacity that does not fit.

The estimates are close upper bounds, for incompressible data in a full table that has replaced all its items
several times and writes checkpoints. Reverb compresses items, so repetitive data (frames of a game) may take
much less; that shows only during the run, too late to refuse the configuration.

They were measured with Reverb 0.14.0, as the growth of a server's process from a tenth of its capacity on,
filled with random bytes by the layouts' own writers in long episodes:

- packed: with vectors of 1 to 5,000 numbers and pictures, up to 500 MB, a server held 1.04 to 1.13 times the
  bytes of rows, and 1.25 times in the worst case, 100 MB that were replaced a dozen times.
- trajectory: the same, and 3-step and 10-step transitions. Items are small and take nearly only Reverb's
  bookkeeping: 3,400 bytes for 32 of data.
- saving: the first two to four checkpoints made the server grow by 0.6 to 9 kB for each item.

For servers that wrote no checkpoint, the estimate without its part for saving was 0.88 to 1.12 times the
measured size.
"""

import math
from typing import NamedTuple

import tree

from actorlearner.config.problems import problem
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from actorlearner.process.ram import available_bytes
from actorlearner.records.formatting import bytes_text
from actorlearner.records.notify import warn
from actorlearner.replay.layout import ReplayLayout
from actorlearner.replay.rate_limit import items, max_items

PROCESS_BYTES = 512 * 2**20
"""Bytes of a role's process before it has any experience: the libraries, the environment and the agent.

Measured: 530 to 550 MB for a replay server, a collect actor and an eval actor, and 730 MB for a learner.
280 MB of each are the libraries' files, which the processes share.
"""

# Bytes of the server's memory.
_ITEM = 100
_REFERENCE = 25
"""An item's reference to one step of one column."""
_SMALL_STEP = 520
_STEP = 1_160
"""Bookkeeping of one step of one column, beside the data; less for the smallest arrays."""
_MAX_SMALL_STEP = 32
_ALLOCATED = 1.1
"""Bytes that the allocator takes for each byte of data, with the holes left by replaced items."""
_SAVED_ITEM = 1_900
_SAVED_REFERENCE = 110
"""Bytes that saving takes for an item and for each of its references; the allocator keeps them."""

# Bytes of a checkpoint beside the data.
_ITEM_ON_DISK = 30
_REFERENCE_ON_DISK = 3
_STEP_ON_DISK = 16


class _Column(NamedTuple):
    """One column of an item.

    Attributes:
      references: steps of this column in the item.
      step_bytes: bytes of data in one step. In the trajectory layout, an item stores one new step; its
        other steps are stored already.
    """

    references: int
    step_bytes: int


def experience_bytes(capacity: int, layout: ReplayLayout) -> int:
    """Returns the replay server's bytes for `capacity` transitions, in addition to PROCESS_BYTES.

    The trajectory layout also stores the last time step of each episode n times. That is left out: it matters
    only if episodes are not much longer than n.
    """
    return items(capacity, layout.env_steps_per_item) * _item_bytes(layout)


def checkpoint_bytes(capacity: int, layout: ReplayLayout) -> int:
    """Returns the bytes on disk of one checkpoint of `capacity` transitions."""
    columns = sum(_STEP_ON_DISK + data + _REFERENCE_ON_DISK * steps for steps, data in _columns(layout))
    return items(capacity, layout.env_steps_per_item) * (_ITEM_ON_DISK + columns)


def max_capacity(memory_bytes: int, layout: ReplayLayout) -> int:
    """Returns the transitions that fit into `memory_bytes`, rounded down to two digits."""
    largest = max(0, memory_bytes) // _item_bytes(layout) * layout.env_steps_per_item
    unit = 10 ** max(0, len(str(largest)) - 2)
    return largest // unit * unit


def capacity_of(config: Config, layout: ReplayLayout) -> int:
    """Returns the transitions, or the env steps in sequences, that a full experience table holds."""
    if layout.experience.iteration:
        return max_items(config, layout.experience, layout.env_steps_per_item) * layout.env_steps_per_item
    return config.replay.capacity


def capacity_key(layout: ReplayLayout) -> str:
    """Returns the key that sets `capacity_of`."""
    return "agent.env_steps_per_iteration" if layout.experience.iteration else "replay.capacity"


def check_memory(config: Config, layout: ReplayLayout, saved: int | None = None) -> None:
    """Refuses a capacity that does not fit into the memory that is available now.

    Call it in a process that has loaded everything but the experience. In a resumed run, the capacity may no
    longer fit because other roles have grown; if the transitions to restore fit, only a warning is logged.

    Args:
      config: the experiment.
      layout: its replay layout.
      saved: transitions to restore; None in a new run.

    Raises:
      ConfigurationError: it does not fit; the problem does not name the key's source.
    """
    key, capacity = capacity_key(layout), capacity_of(config, layout)
    needed, available = experience_bytes(capacity, layout), available_bytes()
    if needed <= available:
        return
    need = f"may need {bytes_text(needed)} of memory, and {bytes_text(available)} is available"
    wrong = f"{capacity} transitions {need}"
    if saved is not None and experience_bytes(saved, layout) <= available:
        warn(f"{key}: {wrong}; the run continues: its {saved:,} transitions fit")
        return
    most = max_capacity(available, layout)
    if iteration := layout.experience.iteration:
        most = most * iteration.env_steps // capacity
    allowed = f"at most {most} with this environment on this machine"
    raise ConfigurationError([problem(key, wrong, allowed)])


def _columns(layout: ReplayLayout) -> list[_Column]:
    return [
        _Column(int(spec.shape[0]), math.prod(spec.shape[1:]) * spec.dtype.size)
        for spec in tree.flatten(layout.item_specs)
    ]


def _item_bytes(layout: ReplayLayout) -> int:
    """Returns the bytes that one item takes, including the one step it adds to each column."""
    columns = _columns(layout)
    references = sum(column.references for column in columns)
    steps = sum(
        (_SMALL_STEP if data <= _MAX_SMALL_STEP else _STEP) + _ALLOCATED * data for _, data in columns
    )
    saved = _SAVED_ITEM + _SAVED_REFERENCE * references
    return math.ceil(_ITEM + _REFERENCE * references + steps + saved)
