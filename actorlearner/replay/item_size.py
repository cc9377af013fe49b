"""How many transitions an item of the packed layout holds.

Larger items cost Reverb less work for each transition. But the transitions of an item come from one
actor, one after the other, and as many batches as an item has rows are dealt from the same items: the more
rows, the fewer independent transitions those batches are worth (`benchmarks mixing`). An actor only writes
whole items, too, and the learner keeps `learn.batch_size` items in memory.
"""

MAX_ROWS = 32
"""Rows of an item, where they are small.

With 64, the learner is 1 to 2 % faster (`benchmarks learner`), and what batches from the same items say
together of an actor's eight environments varies by two thirds more; with 16, it is 3 to 4 % slower.
"""

MAX_ITEMS = 2**31 - 1
"""Of one of Reverb's tables: its size is an integer of 32 bits."""

_MOST_BYTES = 32 * 1024
"""Bytes of an item, unless a single row is larger."""


def rows_per_item(width: int) -> int:
    """How many rows of `width` bytes an item holds."""
    return max(1, min(MAX_ROWS, _MOST_BYTES // width))


def max_transitions_per_item(layout: str) -> int:
    """The most that any environment's transitions come to in the `replay.layout` of that name."""
    return {"packed": MAX_ROWS, "trajectory": 1}[layout]
