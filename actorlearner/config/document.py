"""Reading and writing YAML: values, the line of every key, and everything that is wrong with a file.

The dialect is OmegaConf's: YAML 1.1, but 1e-3 is a number, a date is text, and a key may not be given
twice. It is parsed here because OmegaConf tells neither lines nor more than the first mistake.
"""

import dataclasses
import pathlib
import re
from typing import Any

import yaml

from actorlearner.config.problems import problem, show
from actorlearner.config.shipped import find_config
from actorlearner.errors import ConfigurationError

_FLOAT_TAG = "tag:yaml.org,2002:float"
_MERGE_TAG = "tag:yaml.org,2002:merge"
_TIMESTAMP_TAG = "tag:yaml.org,2002:timestamp"
_FLOAT = re.compile(
    r"""^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
          | [-+]?[0-9][0-9_]*[eE][-+]?[0-9]+
          | [-+]?\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)$""",
    re.VERBOSE,
)

# PyYAML lets the errors of its conversions through: int("0x"), a lookup of a bool, chr() of an escape, ...
_CONVERSION_ERRORS = (ArithmeticError, AttributeError, LookupError, ValueError)
_CONSTRUCTION_ERRORS = (yaml.YAMLError, *_CONVERSION_ERRORS)

# What no experiment needs; beyond it PyYAML and OmegaConf take seconds, or all of the stack.
_MOST_BYTES = 65_536
_MOST_VALUES = 10_000
MAX_LEVELS = 20
"""How deep values may be nested."""

_TOO_DEEP = f"nested more than {MAX_LEVELS} levels deep"

Path = tuple[str, ...]
"""The names on the way to a key: ("learn", "batch_size")."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with OmegaConf's idea of a number."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Says which value cannot be converted, and where it stands."""
        try:
            value = super().construct_object(node, deep)
            if type(value) is int:
                str(value)  # Python refuses thousands of digits there, where they are hexadecimal or binary.
        except _CONVERSION_ERRORS:
            kind = node.tag.rpartition(":")[2]
            wrong = f"{show(node.value)} cannot be read as {kind}"
            raise yaml.constructor.ConstructorError(None, None, wrong, node.start_mark) from None
        return value


class _Dumper(yaml.SafeDumper):
    """Quotes the text that `_Loader` would take for something else."""

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
    """What one configuration file says.

    Attributes:
      name: the file, as messages show it.
      tree: its mapping, with the first value of a key that is given twice; empty if it is unusable.
      lines: the line of each key, counted from 1.
      problems: what is wrong with the file as YAML.
      usable: whether it was read at all.
    """

    name: str
    tree: dict[Any, Any] = dataclasses.field(default_factory=dict)
    lines: dict[Path, int] = dataclasses.field(default_factory=dict)
    problems: tuple[str, ...] = ()
    usable: bool = True

    def source(self, path: Path) -> str:
        """Where the key was given: FILE:LINE, or FILE where a YAML merge (<<) brought it."""
        line = self.lines.get(path)
        return self.name if line is None else f"{self.name}:{line}"


def read_document(path: str) -> Document:
    """Reads a configuration file; whatever is wrong stands in the result's problems."""
    try:
        file = find_config(path)
        content = _read(file)
        if len(content) > _MOST_BYTES:
            return _unusable(path, f"is larger than {_MOST_BYTES} bytes")
        text = content.decode("utf-8-sig")
    except ConfigurationError as error:
        return Document(path, problems=error.problems, usable=False)
    except OSError as error:
        return _unusable(path, f"cannot be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
        return _unusable(path, f"is not UTF-8 text (byte {error.start})")
    return _parse_document(str(file), text)


def parse_value(text: str) -> Any:
    """The value that `text` means in YAML; nothing at all is null.

    Raises:
      ValueError: it is not YAML; the message says why in one line.
    """
    if len(text) > _MOST_BYTES:
        raise ValueError(f"larger than {_MOST_BYTES} characters")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        repeated = _index_keys(node)[1]
        _check_extent(node)
        if repeated:
            raise ValueError(f"key {'.'.join(repeated[0][0])} is given twice")
        return loader.construct_document(node)
    except (*_CONSTRUCTION_ERRORS, RecursionError) as error:
        raise ValueError(_explain(error)[1]) from None


def dump(tree: dict[str, Any]) -> str:
    """`tree` as YAML text that `read_document` reads back unchanged; keys keep their order."""
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))


def _read(file: pathlib.Path) -> bytes:
    """The beginning of the file, as far as it matters: a device such as /dev/zero has no end."""
    with file.open("rb") as stream:
        return stream.read(_MOST_BYTES + 1)


def _unusable(name: str, wrong: str) -> Document:
    return Document(name, problems=(problem(name, wrong, "", "a YAML file with a mapping"),), usable=False)


def _parse_document(name: str, text: str) -> Document:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return _unusable(name, "is empty")
        if not isinstance(node, yaml.MappingNode):
            kind = "list" if isinstance(node, yaml.SequenceNode) else "single value"
            return _unusable(name, f"is a {kind}, not a mapping of sections")
        lines, repeated = _index_keys(node)
        _check_extent(node)
        tree = loader.construct_document(node)
        if not isinstance(tree, dict):
            return _unusable(name, f"is a {node.tag}, not a mapping of sections")
    except (*_CONSTRUCTION_ERRORS, RecursionError) as error:
        position, reason = _explain(error)
        line = problem(f"{name}{position}", f"broken YAML: {reason}", "")
        return Document(name, problems=(line,), usable=False)
    problems = tuple(
        problem(".".join(key), f"given twice, first in line {lines[key]}", f"{name}:{line}", "once")
        for key, line in repeated
    )
    return Document(name, tree, lines, problems)


def _index_keys(root: yaml.Node) -> tuple[dict[Path, int], list[tuple[Path, int]]]:
    """Finds the line of each key, and removes every repetition of a key from the nodes.

    Returns:
      The line of the first time that each key is given, and (key, line) of every later time.

    Raises:
      ValueError: a node contains itself.
    """
    lines: dict[Path, int] = {}
    repeated: list[tuple[Path, int]] = []
    above: list[yaml.Node] = []
    seen: set[int] = set()

    def visit(node: yaml.Node, path: Path) -> None:
        if any(node is other for other in above):
            raise ValueError("an alias contains itself")
        if id(node) in seen:  # The target of several aliases; its keys have the line of the first.
            return
        seen.add(id(node))
        above.append(node)
        if isinstance(node, yaml.MappingNode):
            node.value = [pair for pair in node.value if not is_repetition(pair[0], path)]
            for key_node, value_node in node.value:
                visit(value_node, (*path, str(key_node.value)))
        elif isinstance(node, yaml.SequenceNode):
            for index, element in enumerate(node.value):
                visit(element, (*path, str(index)))
        above.pop()

    def is_repetition(key_node: yaml.Node, path: Path) -> bool:
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == _MERGE_TAG:
            return False
        key, line = (*path, key_node.value), key_node.start_mark.line + 1
        if key in lines:
            repeated.append((key, line))
            return True
        lines[key] = line
        return False

    visit(root, ())
    return lines, repeated


def _check_extent(root: yaml.Node) -> None:
    """Refuses a document that is too deep, or too large once every alias is written out.

    Raises:
      ValueError: with the reason.
    """
    extents: dict[int, tuple[int, int]] = {}

    def extent(node: yaml.Node) -> tuple[int, int]:
        """How many values the node and all below it are, and on how many levels."""
        if id(node) not in extents:
            below = [extent(child) for child in _children(node)]
            values = 1 + sum(values for values, _ in below)
            extents[id(node)] = values, 1 + max((levels for _, levels in below), default=0)
        return extents[id(node)]

    values, levels = extent(root)
    if levels > MAX_LEVELS:
        raise ValueError(_TOO_DEEP)
    if values > _MOST_VALUES:
        raise ValueError(f"more than {_MOST_VALUES} values, aliases written out")


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _explain(error: BaseException) -> tuple[str, str]:
    """The position in a document (":LINE:COLUMN", or nothing) and the reason of a YAML error."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        position = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        reason = ", ".join(part for part in (error.problem, error.context) if part)
        return position, reason
    if isinstance(error, yaml.reader.ReaderError):
        return "", f"{error.reason} (character {error.position + 1})"
    if isinstance(error, RecursionError):
        return "", _TOO_DEEP
    return "", str(error) or type(error).__name__
