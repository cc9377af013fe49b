"""How many transitions an item of the packed layout holds.

Reverb's work for an item hardly depends on its size, so larger items cost less for each transition. But the
transitions of an item come from one actor, one after the other, and an actor only writes whole items; and
the learner keeps `learn.batch_size` items in memory.
"""

MOST_ROWS = 64
"""Rows of an item, where they are small."""

MOST_ITEMS = 2**31 - 1
"""Of one of Reverb's tables: its size is an integer of 32 bits."""

_MOST_BYTES = 32 * 1024
"""Bytes of an item, unless a single row is larger."""


def rows_per_item(width: int) -> int:
    """How many rows of `width` bytes an item holds."""
    return max(1, min(MOST_ROWS, _MOST_BYTES // width))


def most_transitions_per_item(layout: str) -> int:
    """The most that any environment's transitions come to in the `replay.layout` of that name."""
    return {"packed": MOST_ROWS, "trajectory": 1}[layout]
