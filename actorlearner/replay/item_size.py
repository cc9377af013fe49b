"""The number of transitions in an item of the packed layout.

Larger items mean less work for Reverb per transition. But an item holds consecutive transitions of one actor,
and its n rows go to n batches: the more rows, the more correlated are these batches (`benchmarks mixing`).
Also, actors write only complete items, and the learner keeps `learn.batch_size` items in memory.
"""

MAX_ROWS = 32
"""Rows of an item, if rows are small.

With 64 rows the learner is 1 to 2 % faster (`benchmarks learner`), but the mean over the batches that share
items of an actor with eight environments has a variance two thirds larger. With 16 rows the learner is 3 to
4 % slower.
"""

MAX_ITEMS = 2**31 - 1
"""The largest number of items in a table of Reverb: its size is a 32-bit integer."""

_MOST_BYTES = 32 * 1024
"""The largest item in bytes, unless a single row is larger."""


def rows_per_item(width: int) -> int:
    """Returns the number of rows of `width` bytes in an item."""
    return max(1, min(MAX_ROWS, _MOST_BYTES // width))


def max_transitions_per_item(layout: str) -> int:
    """Returns the most transitions that an item of this `replay.layout` holds for any environment."""
    return {"packed": MAX_ROWS, "trajectory": 1}[layout]
