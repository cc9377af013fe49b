"""The declared configuration keys with their types, and strict checks of values against them.

The only conversion is from an integer to a declared float: the text "256" is no integer, and 1 is not true.
"""

import dataclasses
import math
import types
import typing
from typing import Any

from actorlearner.config.schema import AgentConfig, Config

_INT64 = 2**63
_KINDS = {
    bool: "true or false",
    int: "integer",
    float: "number",
    str: "text",
    dict: "mapping",
}
_WRONG_TYPE = "is of the wrong type"


@dataclasses.dataclass(frozen=True)
class Key:
    """One declared key.

    Attributes:
      kind: bool, int, float, str, list or dict.
      element: the type of a list's elements; the kind itself for others.
      optional: whether the value may be None.
      default: the default value.
      doc: the documentation, one or two sentences.
      at_least: an inclusive lower bound, of each element of a list; None for no bound.
      above: an exclusive lower bound.
      at_most: an inclusive upper bound.
      choices: the only allowed values; empty for no such restriction.
    """

    kind: type
    element: type
    optional: bool
    default: Any
    doc: str
    at_least: float | None
    above: float | None
    at_most: float | None
    choices: tuple[str, ...]

    def complaint(self, value: Any) -> str:
        """Returns what is wrong with `value`, as "is ..."; empty if it is allowed."""
        if value is None and self.optional:
            return ""
        if self.kind is dict:
            return _plain_mistake(value) if isinstance(value, dict) else _WRONG_TYPE
        if self.kind is list and not isinstance(value, list):
            return _WRONG_TYPE
        elements = value if self.kind is list else [value]
        mistakes = (_scalar_mistake(element, self.element) for element in elements)
        mistake = next(filter(None, mistakes), "")
        return mistake or ("" if all(map(self._in_range, elements)) else "is out of range")

    def _in_range(self, element: Any) -> bool:
        if self.choices:
            return element in self.choices
        return (
            (self.at_least is None or element >= self.at_least)
            and (self.above is None or element > self.above)
            and (self.at_most is None or element <= self.at_most)
        )

    def normalised(self, value: Any) -> Any:
        """Converts an allowed value to the declared type: an integer to a float, a tuple to a list."""
        if value is None:
            return None
        if self.kind is list:
            return [self.element(element) for element in value]
        return self.kind(value) if self.kind in (float, str) else value

    def __str__(self) -> str:
        """Returns what is allowed, as in `integer or null, at least 1`."""
        bounds = (("at least", self.at_least), ("above", self.above), ("at most", self.at_most))
        limits = " and ".join(f"{name} {bound}" for name, bound in bounds if bound is not None)
        if self.choices:
            limits = "one of " + ", ".join(self.choices)
        kind = f"list of {_KINDS[self.element]} values" if self.kind is list else _KINDS[self.kind]
        if limits and self.kind is list:
            limits = f"each {limits}"
        return ", ".join(filter(None, (f"{kind} or null" if self.optional else kind, limits)))


def config_keys(agent_class: type[AgentConfig]) -> dict[str, Key]:
    """Returns every key by its dotted name, in the order of declaration.

    Args:
      agent_class: the class of the agent section.
    """
    keys: dict[str, Key] = {}
    sections = typing.get_type_hints(Config) | {"agent": agent_class}
    for name, key in section_keys(Config).items():
        if key is not None:
            keys[name] = key
            continue
        for inner_name, inner in section_keys(sections[name]).items():
            assert inner is not None, "sections have no sections"
            keys[f"{name}.{inner_name}"] = inner
    return keys


def section_keys(config_class: type) -> dict[str, Key | None]:
    """Returns the keys of one dataclass by name; None for a field that is a dataclass itself."""
    hints = typing.get_type_hints(config_class)
    return {field.name: _key(field, hints[field.name]) for field in dataclasses.fields(config_class)}


def _key(field: "dataclasses.Field[Any]", hint: Any) -> Key | None:
    if dataclasses.is_dataclass(hint):
        return None
    if not field.metadata:
        raise TypeError(f"{field.name} is not declared by setting(...)")
    optional = typing.get_origin(hint) in (typing.Union, types.UnionType)
    if optional:
        (hint,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
    kind = typing.get_origin(hint) or hint
    element = typing.get_args(hint)[0] if kind is list else kind
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    return Key(kind, element, optional, default, **field.metadata)


def _scalar_mistake(value: Any, kind: Any) -> str:
    if type(value) is not kind and not (kind is float and type(value) is int):
        if kind is int and isinstance(value, float) and value.is_integer():
            return "is not written as an integer"
        return _WRONG_TYPE
    if isinstance(value, str):
        return _text_mistake(value)
    if isinstance(value, int):  # TensorFlow's and Reverb's integers have 64 bits.
        return "" if -_INT64 <= value < _INT64 else "is out of range: it needs more than 64 bits"
    return "" if math.isfinite(value) else "is not finite"


def _plain_mistake(value: Any) -> str:
    """Returns why a free-form value could not be written to the run directory and read back equal."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return "has a name that is not text"
        return next(filter(None, map(_plain_mistake, (*value, *value.values()))), "")
    if isinstance(value, list):
        return next(filter(None, map(_plain_mistake, value)), "")
    if isinstance(value, str):
        return _text_mistake(value)
    if isinstance(value, float) and math.isnan(value):
        return "is not a number"
    return "" if value is None or isinstance(value, (bool, int, float)) else _WRONG_TYPE


def _text_mistake(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"has a character that is not Unicode (U+{ord(value[error.start]):04X})"
    return ""
