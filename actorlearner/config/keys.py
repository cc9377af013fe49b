"""The tree of configuration keys with their declared types, and strict checks of values against them.

OmegaConf converts leniently (text to numbers, numbers to text, truth to integers); a configuration
that says something else than it means is refused instead.
"""

import dataclasses
import math
import types
import typing
from typing import Any

from actorlearner.config.schema import AgentConfig, Config
from actorlearner.config.setting import Allowed

_INT64 = 2**63
_KINDS = {int: "integer", float: "number", bool: "true or false", str: "text", Any: "any value"}


@dataclasses.dataclass(frozen=True)
class Key:
    """One key: its declared type, range, default and documentation."""

    hint: Any
    allowed: Allowed
    default: Any = None
    doc: str = ""

    @property
    def is_mapping(self) -> bool:
        """Whether the value is a mapping with names of the user's choice."""
        return typing.get_origin(_without_none(self.hint)[0]) is dict

    def complaint(self, value: Any) -> str:
        """What is wrong with `value`, as "is ..."; empty if it is allowed."""
        mistake = _mistake(value, self.hint)
        if not mistake and not self.allowed.permits(value):
            mistake = "is out of range"
        return mistake

    def __str__(self) -> str:
        """What is allowed."""
        limits = str(self.allowed)
        if limits and typing.get_origin(_without_none(self.hint)[0]) is list:
            limits = f"each {limits}"
        return ", ".join(part for part in (_describe(self.hint), limits) if part)


@dataclasses.dataclass(frozen=True)
class Section:
    """The keys and sections below one name.

    Attributes:
      complete: False for the section of an unknown agent, whose keys cannot be told.
    """

    members: "dict[str, Key | Section]"
    complete: bool = True


def config_keys(agent_class: type[AgentConfig] | None) -> Section:
    """All keys with `agent_class` as the agent section; None where the algorithm is not known."""
    root = _section(Config)
    agent = _section(agent_class or AgentConfig, complete=agent_class is not None)
    return Section({**root.members, "agent": agent})


def dotted_keys(section: Section, prefix: str = "") -> dict[str, Key]:
    """Every key below `section` by its dotted name, in the order of declaration."""
    found: dict[str, Key] = {}
    for name, member in section.members.items():
        if isinstance(member, Section):
            found.update(dotted_keys(member, f"{prefix}{name}."))
        else:
            found[prefix + name] = member
    return found


def as_declared(value: Any, hint: Any) -> Any:
    """A valid `value` in the one form of its type: no integers for floats, no tuples for lists."""
    if value is None:
        return None
    hint, _ = _without_none(hint)
    if hint in (float, str):
        return hint(value)
    if typing.get_origin(hint) is list:
        return [as_declared(element, typing.get_args(hint)[0]) for element in value]
    return value


def _section(config_class: type, complete: bool = True) -> Section:
    hints = typing.get_type_hints(config_class)
    members: dict[str, Key | Section] = {}
    for field in dataclasses.fields(config_class):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            members[field.name] = _section(hint)
        else:
            members[field.name] = Key(hint, field.metadata["allowed"], _default(field), field.metadata["doc"])
    return Section(members, complete)


def _default(field: "dataclasses.Field[Any]") -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _without_none(hint: Any) -> tuple[Any, bool]:
    """The type without its None, and whether it had one."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    others = [part for part in typing.get_args(hint) if part is not types.NoneType]
    if len(others) != 1:
        raise TypeError(f"a configuration key cannot be declared as {hint}")
    return others[0], True


def _describe(hint: Any) -> str:
    hint, optional = _without_none(hint)
    origin = typing.get_origin(hint)
    if origin is list:
        kind = f"list of {_describe(typing.get_args(hint)[0])} values"
    elif origin is dict:
        kind = "mapping"
    else:
        kind = _KINDS[hint]
    return f"{kind} or null" if optional else kind


def _mistake(value: Any, hint: Any) -> str:
    """Why `value` is not of the type `hint`, as "is ..."; empty if it is."""
    hint, optional = _without_none(hint)
    if value is None and optional:
        return ""
    origin = typing.get_origin(hint)
    if origin is list:
        if not isinstance(value, list):
            return "is of the wrong type"
        element_hint = typing.get_args(hint)[0]
        return next(filter(None, (_mistake(element, element_hint) for element in value)), "")
    if origin is dict:
        return _plain_mistake(value) if isinstance(value, dict) else "is of the wrong type"
    if hint is Any:
        return _plain_mistake(value)
    return _scalar_mistake(value, hint)


def _scalar_mistake(value: Any, kind: Any) -> str:
    if type(value) is not kind and not (kind is float and type(value) is int):
        if kind is int and isinstance(value, float) and value.is_integer():
            return "is not written as an integer"
        return "is of the wrong type"
    if isinstance(value, str):
        return _text_mistake(value)
    if type(value) is int:  # Where TensorFlow's and Reverb's integers end.
        return "" if -_INT64 <= value < _INT64 else "is out of range: it needs more than 64 bits"
    return "is not finite" if kind is float and not math.isfinite(value) else ""


def _plain_mistake(value: Any) -> str:
    """What in a free-form value could not be written to the run directory and read back equal."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return "has a name that is not text"
        return next(filter(None, map(_plain_mistake, (*value, *value.values()))), "")
    if isinstance(value, list):
        return next(filter(None, map(_plain_mistake, value)), "")
    if isinstance(value, str):
        return _text_mistake(value)
    if value is None or isinstance(value, (bool, int)):
        return ""
    if isinstance(value, float):
        return "is not a number" if math.isnan(value) else ""
    return "is of the wrong type"


def _text_mistake(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"has a character that is not Unicode (U+{ord(value[error.start]):04X})"
    return ""
