"""Estimates the memory of the replay server that one item of the experience takes.

The figures are close upper bounds: for data that cannot be compressed, in a full table whose items were all
replaced several times, and that is saved. Reverb compresses items, so repetitive data (pictures of a game)
may take much less; that shows only during the run, too late to refuse the configuration.

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
from collections.abc import Iterable
from typing import NamedTuple

_MIB = 2**20
_GIB = 2**30

# Bytes of the server's memory.
_ITEM = 100
_REFERENCE = 25
"""An item's reference to one step of one column."""
_SMALL_STEP = 520
_STEP = 1_160
"""Bookkeeping of one step of one column, beside the data; less for the smallest arrays."""
_LARGEST_SMALL_STEP = 32
_ALLOCATED = 1.1
"""Bytes that the allocator takes for each byte of data, with the holes left by replaced items."""
_SAVED_ITEM = 1_900
_SAVED_REFERENCE = 110
"""Bytes that saving takes for an item and for each of its references; the allocator keeps them."""


class Column(NamedTuple):
    """One column of an item.

    Attributes:
      references: steps of this column in the item.
      step_bytes: bytes of data in one step. An item adds one step of its own and shares the others with
        earlier items.
    """

    references: int
    step_bytes: int


def item_bytes(columns: Iterable[Column]) -> int:
    """Returns the bytes that one item takes, including the one step it adds to each column."""
    columns = list(columns)
    references = sum(column.references for column in columns)
    steps = sum(
        (_SMALL_STEP if data <= _LARGEST_SMALL_STEP else _STEP) + _ALLOCATED * data for _, data in columns
    )
    saved = _SAVED_ITEM + _SAVED_REFERENCE * references
    return math.ceil(_ITEM + _REFERENCE * references + steps + saved)


def fitting(memory_bytes: int, bytes_per_item: int, transitions_per_item: int) -> int:
    """Returns the transitions that fit into `memory_bytes`, rounded down to two digits."""
    most = max(0, memory_bytes) // bytes_per_item * transitions_per_item
    unit = 10 ** max(0, len(str(most)) - 2)
    return most // unit * unit


def size(number_of_bytes: float) -> str:
    """Returns a number of bytes as text, in GiB or MiB."""
    if number_of_bytes >= 0.1 * _GIB:
        return f"{number_of_bytes / _GIB:,.1f} GiB"
    return f"{number_of_bytes / _MIB:.1f} MiB"
