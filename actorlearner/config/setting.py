"""Declares one configuration key: its default, documentation and allowed values."""

import dataclasses
from typing import Any


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
    metadata = {"doc": doc, "at_least": at_least, "above": above, "at_most": at_most, "choices": choices}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)
