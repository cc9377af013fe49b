"""Declares one configuration key: its default, documentation and allowed values."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Allowed:
    """The allowed values of a key: the choices, or every bound that is not None."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()

    def permits(self, value: Any) -> bool:
        """Returns whether `value`, or each element of a list, is allowed. None is: the type decides on it."""
        if value is None:
            return True
        if isinstance(value, (list, tuple)):
            return all(self.permits(element) for element in value)
        if self.choices:
            return value in self.choices
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
        )

    def __str__(self) -> str:
        if self.choices:
            return "one of " + ", ".join(self.choices)
        bounds = (("at least", self.at_least), ("above", self.above), ("at most", self.at_most))
        return " and ".join(f"{name} {bound}" for name, bound in bounds if bound is not None)


def setting(
    default: Any,
    doc: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declares a configuration key as a dataclass field with its documentation and allowed values.

    Args:
      default: the default value; each instance gets its own copy of a list or dict.
      doc: one or two sentences with the unit.
      at_least: an inclusive lower bound; bounds apply to each element of a list.
      above: an exclusive lower bound.
      at_most: an inclusive upper bound.
      choices: the only allowed values.
    """
    metadata = {"doc": doc, "allowed": Allowed(at_least, above, at_most, choices)}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)
