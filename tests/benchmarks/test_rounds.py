"""Measuring in rounds."""

from benchmarks.support.rounds import compared, in_turn


def test_measurements_take_turns() -> None:
    order: list[str] = []

    def measure(name: str) -> int:
        order.append(name)
        return len(order)

    assert in_turn({"a": lambda: measure("a"), "b": lambda: measure("b")}, 3) == {
        "a": [1, 3, 5],
        "b": [2, 4, 6],
    }


def test_the_ratio_is_the_median_of_the_rounds_ratios() -> None:
    assert compared({"ours": [10.0, 20.0, 90.0], "stock": [5.0, 1.0, 30.0]}, "ours", "stock") == (
        5.0,
        20.0,
        3.0,
    )
