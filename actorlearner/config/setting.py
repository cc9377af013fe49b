"""How one configuration key is declared: default, documentation and allowed range in one place."""

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Allowed:
    """The values a key may take; every bound that is not None applies (to each element of a list)."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    choices: tuple[Any, ...] = ()

    def permits(self, value: Any) -> bool:
        """Whether `value` is inside. None always is: whether None is possible is the type's affair."""
        if value is None:
            return True
        if isinstance(value, (list, tuple)):
            return all(self.permits(element) for element in value)
        if self.choices and value not in self.choices:
            return False
        return not (
            (self.at_least is not None and not value >= self.at_least)
            or (self.above is not None and not value > self.above)
            or (self.at_most is not None and not value <= self.at_most)
            or (self.below is not None and not value < self.below)
        )

    def __str__(self) -> str:
        if self.choices:
            return "one of " + ", ".join(map(str, self.choices))
        bounds = (
            ("at least", self.at_least),
            ("above", self.above),
            ("at most", self.at_most),
            ("below", self.below),
        )
        return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


def setting(
    default: Any,
    doc: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    choices: Sequence[Any] = (),
) -> Any:
    """Declares a configuration key: a dataclass field that carries its documentation and range.

    Args:
      default: the default value; lists and dicts are copied for each instance.
      doc: one or two sentences with the unit.
      at_least: the lowest number allowed; this and the other bounds hold for each element of a list.
      above: a number that is too low by itself, but nothing above it is.
      at_most: the highest number allowed.
      below: a number that is too high by itself, but nothing below it is.
      choices: the only values allowed.
    """
    allowed = Allowed(at_least, above, at_most, below, tuple(choices))
    metadata = {"doc": doc, "allowed": allowed}
    if isinstance(default, (list, dict)):
        copy = type(default)
        return dataclasses.field(default_factory=lambda: copy(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)
