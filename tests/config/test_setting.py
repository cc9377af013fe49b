"""The declaration of configuration keys."""

import dataclasses
from typing import Any

import pytest

from actorlearner.config.setting import Allowed, setting


@pytest.mark.parametrize(
    ("allowed", "inside", "outside"),
    [
        (Allowed(at_least=1), [1, 2, 10**18], [0, -1, 0.999]),
        (Allowed(above=0), [1e-300, 1], [0, 0.0, -1]),
        (Allowed(at_most=1), [1, -5], [1.001, 2]),
        (Allowed(at_least=0, at_most=1), [0, 0.5, 1], [-0.1, 1.1]),
        (Allowed(choices=("huber", "mse")), ["huber", "mse"], ["hubert", "", 0]),
        (Allowed(), [0, "anything", -1.5], []),
    ],
)
def test_bounds(allowed: Allowed, inside: list[Any], outside: list[Any]) -> None:
    assert [value for value in inside if not allowed.permits(value)] == []
    assert [value for value in outside if allowed.permits(value)] == []


def test_bounds_hold_for_each_element() -> None:
    allowed = Allowed(at_least=1)
    assert allowed.permits([])
    assert allowed.permits([256, 1])
    assert not allowed.permits([256, 0])
    assert not allowed.permits((0, 256))


def test_none_is_left_to_the_type() -> None:
    assert Allowed(at_least=1, choices=("a",)).permits(None)


def test_nan_is_outside_of_any_bound() -> None:
    assert not Allowed(at_least=0).permits(float("nan"))
    assert not Allowed(at_most=0).permits(float("nan"))


@pytest.mark.parametrize(
    ("allowed", "text"),
    [
        (Allowed(at_least=1), "at least 1"),
        (Allowed(at_least=0, at_most=1.5), "at least 0 and at most 1.5"),
        (Allowed(above=0, at_most=1_000_000), "above 0 and at most 1000000"),
        (Allowed(choices=("huber", "mse")), "one of huber, mse"),
        (Allowed(), ""),
    ],
)
def test_text(allowed: Allowed, text: str) -> None:
    assert str(allowed) == text


def test_each_instance_has_its_own_list_and_dict() -> None:
    @dataclasses.dataclass(frozen=True)
    class Example:
        layers: list[int] = setting([1], "Units.")
        options: dict[str, int] = setting({"a": 1}, "Options.")

    Example().layers.append(2)
    Example().options["b"] = 2
    assert Example() == Example([1], {"a": 1})
    assert Example.__dataclass_fields__["layers"].metadata["doc"] == "Units."
