"""How many rows an item holds."""

import pytest

from actorlearner.replay.item_size import MOST_ROWS, most_transitions_per_item, rows_per_item


@pytest.mark.parametrize(
    ("width", "rows"), [(1, MOST_ROWS), (1024, MOST_ROWS), (1025, 31), (20_000, 1), (56_000, 1)]
)
def test_items_are_bounded_in_rows_and_in_bytes(width: int, rows: int) -> None:
    assert rows_per_item(width) == rows


def test_the_bound_that_configurations_are_checked_with() -> None:
    assert most_transitions_per_item("packed") == MOST_ROWS
    assert most_transitions_per_item("trajectory") == 1
