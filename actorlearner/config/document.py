"""Reads and writes YAML, and reports everything that is wrong with a file, with the line of each key.

The dialect is YAML 1.1, except that 1e-3 is a number, a date is text, and no key, not even <<, may be given
twice.
"""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from actorlearner.config.problems import problem, show
from actorlearner.config.shipped import find_config
from actorlearner.errors import ConfigurationError

_FLOAT_TAG = "tag:yaml.org,2002:float"
_TIMESTAMP_TAG = "tag:yaml.org,2002:timestamp"
_FLOAT = re.compile(
    r"""^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
          | [-+]?[0-9][0-9_]*[eE][-+]?[0-9]+
          | [-+]?\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)$""",
    re.VERBOSE,
)

# PyYAML does not catch the errors of its conversions: int("0x"), a lookup of a bool, chr() of an escape, ...
_CONVERSION_ERRORS = (ArithmeticError, AttributeError, LookupError, ValueError)
_ERRORS = (yaml.YAMLError, RecursionError, *_CONVERSION_ERRORS)

# No experiment needs more; beyond it PyYAML takes seconds, or all of the stack.
_MAX_BYTES = 65_536
_MAX_VALUES = 10_000
MAX_LEVELS = 20
"""How deep values may be nested."""

_TOO_DEEP = f"nested more than {MAX_LEVELS} levels deep"

KeyPath = tuple[str, ...]
"""The names on the way to a key: ("learn", "batch_size")."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader for this dialect; reports which value cannot be converted and its position."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            if type(value) is int:
                str(value)  # Raises for thousands of digits that were written as hexadecimal or binary.
        except _CONVERSION_ERRORS:
            kind = node.tag.rpartition(":")[2]
            wrong = f"{show(node.value)} cannot be read as {kind}"
            raise yaml.constructor.ConstructorError(None, None, wrong, node.start_mark) from None
        return value


class _Dumper(yaml.SafeDumper):
    """Quotes text that `_Loader` would read as a number."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Loader.add_implicit_resolver(_FLOAT_TAG, _FLOAT, list("-+0123456789."))
_Dumper.add_implicit_resolver(_FLOAT_TAG, _FLOAT, list("-+0123456789."))
_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] != _TIMESTAMP_TAG]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


@dataclasses.dataclass(frozen=True)
class Document:
    """The contents of one configuration file.

    Attributes:
      name: the file, as messages show it.
      tree: its mapping, with the first value of a key that is given twice; empty if the file is unusable.
      lines: the line of each key, counted from 1.
      problems: what is wrong with the file as YAML.
      usable: whether it could be read at all.
    """

    name: str
    tree: dict[Any, Any] = dataclasses.field(default_factory=dict)
    lines: dict[KeyPath, int] = dataclasses.field(default_factory=dict)
    problems: tuple[str, ...] = ()
    usable: bool = True

    def source(self, path: KeyPath) -> str:
        """Returns where the key was given: FILE:LINE, or FILE if a YAML merge (<<) brought it."""
        line = self.lines.get(path)
        return self.name if line is None else f"{self.name}:{line}"


def read_document(path: str, flag: str = "") -> Document:
    """Reads a YAML file; never raises, see `Document.problems`.

    Args:
      path: the file; without `flag` also the name of a shipped configuration.
      flag: the flag that gave the file, for messages, if the file is not a configuration.
    """
    try:
        file = Path(path) if flag else find_config(path)
        with file.open("rb") as stream:  # A device such as /dev/zero has no end.
            content = stream.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            return _unusable(path, f"is larger than {_MAX_BYTES} bytes")
        text = content.decode("utf-8-sig")
    except ConfigurationError as error:
        return Document(path, problems=error.problems, usable=False)
    except OSError as error:
        return _unusable(path or "''", f"cannot be read: {error.strerror or error}", flag)
    except UnicodeDecodeError as error:
        return _unusable(path, f"is not UTF-8 text (byte {error.start})")
    name = str(file)
    try:
        tree, lines, repeated = _parse(text)
    except _ERRORS as error:
        position, reason = _explain(error)
        line = problem(f"{name}{position}", f"broken YAML: {reason}")
        return Document(name, problems=(line,), usable=False)
    if tree is None:
        return _unusable(name, "is empty")
    if not isinstance(tree, dict):
        kind = type(tree).__name__ if isinstance(tree, (list, set)) else "single value"
        return _unusable(name, f"is a {kind}, not a mapping of sections")
    problems = tuple(
        problem(".".join(key), f"given twice, first in line {lines[key]}", "once", source=f"{name}:{line}")
        for key, line in repeated
    )
    return Document(name, tree, lines, problems)


def parse_value(text: str) -> Any:
    """Returns the value of `text` in YAML; None for empty text.

    Raises:
      ValueError: it is not YAML; the message gives the reason in one line.
    """
    if len(text) > _MAX_BYTES:
        raise ValueError(f"larger than {_MAX_BYTES} characters")
    try:
        value, _, repeated = _parse(text)
    except _ERRORS as error:
        raise ValueError(_explain(error)[1]) from None
    if repeated:
        raise ValueError(f"key {'.'.join(repeated[0][0])} is given twice")
    return value


def dump(tree: dict[str, Any]) -> str:
    """Returns `tree` as YAML text that `read_document` reads back unchanged; keys keep their order."""
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))


def _unusable(name: str, wrong: str, source: str = "") -> Document:
    line = problem(name, wrong, "a YAML file with a mapping", source=source)
    return Document(name, problems=(line,), usable=False)


def _parse(text: str) -> tuple[Any, dict[KeyPath, int], list[tuple[KeyPath, int]]]:
    """Returns the value, the line of each key, and (key, line) of every repetition of a key."""
    loader = _Loader(text)
    root = loader.get_single_node()
    if root is None:
        return None, {}, []
    lines, repeated = _index(root)
    return loader.construct_document(root), lines, repeated


def _index(root: yaml.Node) -> tuple[dict[KeyPath, int], list[tuple[KeyPath, int]]]:
    """Finds the line of each key, and removes every repetition of a key from the nodes.

    Returns:
      The line of the first time that each key is given, and (key, line) of every later time.

    Raises:
      ValueError: the document is too deep, or too large once every alias is written out.
    """
    lines: dict[KeyPath, int] = {}
    repeated: list[tuple[KeyPath, int]] = []
    for count, (path, node) in enumerate(_nodes(root, ()), 1):
        if count > _MAX_VALUES:
            raise ValueError(f"more than {_MAX_VALUES} values, aliases written out")
        if isinstance(node, yaml.MappingNode):
            pairs, node.value = node.value, []
            for key_node, value in pairs:
                key, line = (*path, str(key_node.value)), key_node.start_mark.line + 1
                if key in lines:
                    repeated.append((key, line))
                else:
                    lines[key] = line
                    node.value.append((key_node, value))
    return lines, repeated


def _nodes(node: yaml.Node, path: KeyPath) -> Iterator[tuple[KeyPath, yaml.Node]]:
    """Yields a node and then all nodes below it, with their paths, as if every alias were written out."""
    if len(path) >= MAX_LEVELS:  # Ends aliases that contain themselves, too.
        raise ValueError(_TOO_DEEP)
    yield path, node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _nodes(value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, element in enumerate(node.value):
            yield from _nodes(element, (*path, str(index)))


def _explain(error: BaseException) -> tuple[str, str]:
    """Returns the position in a document (":LINE:COLUMN", or nothing) and the reason of an error."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        position = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        return position, ", ".join(filter(None, (error.problem, error.context)))
    if isinstance(error, yaml.reader.ReaderError):
        return "", f"{error.reason} (character {error.position + 1})"
    if isinstance(error, RecursionError):
        return "", _TOO_DEEP
    return "", str(error) or type(error).__name__
