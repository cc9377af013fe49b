"""How many rows an item holds."""

import pytest

from actorlearner.replay.item_size import MAX_ROWS, max_transitions_per_item, rows_per_item


@pytest.mark.parametrize(
    ("width", "rows"), [(1, MAX_ROWS), (1024, MAX_ROWS), (1025, 31), (20_000, 1), (56_000, 1)]
)
def test_items_are_bounded_in_rows_and_in_bytes(width: int, rows: int) -> None:
    assert rows_per_item(width) == rows


def test_max_transitions_per_item_of_each_layout() -> None:
    assert max_transitions_per_item("packed") == MAX_ROWS
    assert max_transitions_per_item("trajectory") == 1
