"""The declaration of configuration keys."""

import dataclasses
from typing import Any

import pytest

from actorlearner.config.keys import Key, section_keys
from actorlearner.config.setting import setting


def declared(field: Any, hint: Any) -> Key:
    """The key of a dataclass with this one field."""
    (key,) = section_keys(dataclasses.make_dataclass("Example", [("key", hint, field)], frozen=True)).values()
    assert key is not None
    return key


@pytest.mark.parametrize(
    ("bounds", "hint", "inside", "outside"),
    [
        ({"at_least": 1}, int, [1, 2, 10**18], [0, -1]),
        ({"above": 0}, float, [1e-300, 1], [0, 0.0, -1]),
        ({"at_most": 1}, float, [1, -5], [1.001, 2]),
        ({"at_least": 0, "at_most": 1}, float, [0, 0.5, 1], [-0.1, 1.1]),
        ({"choices": ("huber", "mse")}, str, ["huber", "mse"], ["hubert", ""]),
        ({}, float, [0, -1.5], []),
        ({"at_least": 1}, list[int], [[], [256, 1]], [[256, 0]]),
        ({"at_least": 1}, int | None, [None, 1], [0]),
    ],
)
def test_bounds(bounds: dict[str, Any], hint: Any, inside: list[Any], outside: list[Any]) -> None:
    key = declared(setting(None, "A key.", **bounds), hint)
    assert [value for value in inside if key.complaint(value)] == []
    assert [key.complaint(value) for value in outside] == ["is out of range"] * len(outside)


@pytest.mark.parametrize(
    ("bounds", "hint", "text"),
    [
        ({"at_least": 1}, int, "integer, at least 1"),
        ({"at_least": 0, "at_most": 1.5}, float | None, "number or null, at least 0 and at most 1.5"),
        ({"above": 0, "at_most": 1_000_000}, float, "number, above 0 and at most 1000000"),
        ({"choices": ("huber", "mse")}, str, "text, one of huber, mse"),
        ({"at_least": 1}, list[int], "list of integer values, each at least 1"),
        ({}, bool, "true or false"),
    ],
)
def test_text(bounds: dict[str, Any], hint: Any, text: str) -> None:
    assert str(declared(setting(None, "A key.", **bounds), hint)) == text


def test_each_instance_has_its_own_list_and_dict() -> None:
    @dataclasses.dataclass(frozen=True)
    class Example:
        layers: list[int] = setting([1], "Units.")
        options: dict[str, int] = setting({"a": 1}, "Options.")

    Example().layers.append(2)
    Example().options["b"] = 2
    assert Example() == Example([1], {"a": 1})
    assert Example.__dataclass_fields__["layers"].metadata["doc"] == "Units."
