"""Makes a Config from a YAML file and `--set` overrides, or reports everything that is wrong with them."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from actorlearner.config.checks import SUITES, Check, cross_problems
from actorlearner.config.document import MAX_LEVELS, Document, KeyPath, parse_value, read_document
from actorlearner.config.keys import Key, config_keys
from actorlearner.config.problems import Sources, closest, problem, show, with_source
from actorlearner.config.schema import AgentConfig, Config, FindAgentClass
from actorlearner.errors import ConfigurationError

_FLAG = "--set"
_DEFAULT = "default"


@dataclasses.dataclass(frozen=True)
class _Given:
    """A value for the key at `path`, and where it comes from."""

    path: KeyPath
    value: Any
    source: str


def load_with_sources(
    path: str,
    overrides: Sequence[str],
    find_agent_class: FindAgentClass,
    checks: Sequence[Check] = (),
) -> tuple[Config, Sources]:
    """Loads a configuration file, with overrides on top.

    Args:
      path: a YAML file, or the name of a shipped configuration.
      overrides: `section.key=value` each, the value in YAML; the last one for a key counts.
      find_agent_class: returns the class of the agent section for a value of `agent.name`.
      checks: further checks of the whole configuration.

    Returns:
      The complete configuration, whose agent section has the algorithm's own class; and where the value of
      each key comes from.

    Raises:
      ConfigurationError: with every problem of the file, the overrides and their combination.
    """
    document = read_document(path)
    problems = list(document.problems)
    given = [*_file_values(document), *_flag_values(overrides, problems)]
    agent_class = _agent_class(given, document, find_agent_class, problems)
    keys = config_keys(agent_class or AgentConfig)
    merged = _merge(given, keys, agent_class is not None, problems)
    config = Config(agent=(agent_class or AgentConfig)())
    broken = set()
    for key, (value, source) in merged.items():
        if value is None and source == _FLAG and keys[key].kind is str and not keys[key].optional:
            value = ""  # `--set environment.name=`: a shell removes the quotes of name=''.
        if complaint := keys[key].complaint(value):
            broken.add(key)
            problems.append(problem(key, f"{show(value)} {complaint}", str(keys[key]), source=source))
        else:
            config = _replace(config, key, keys[key].normalised(value))
    if config.environment.suite not in SUITES and "environment.name" not in merged:
        config = _replace(config, "environment.name", "")  # The default belongs to another suite.
    sources = {key: merged[key][1] if key in merged else _DEFAULT for key in keys}
    if document.usable:
        every: tuple[Check, ...] = (cross_problems, *checks)
        for check in every:
            problems += (with_source(line, sources) for line in check(config, broken))
    if problems:
        raise ConfigurationError(problems)
    return config, sources


def _replace(config: Config, key: str, value: Any) -> Config:
    """Returns a copy with one key changed."""
    section, _, name = key.rpartition(".")
    if not section:
        return dataclasses.replace(config, **{name: value})
    changed = dataclasses.replace(getattr(config, section), **{name: value})
    return dataclasses.replace(config, **{section: changed})


def _file_values(document: Document) -> Iterator[_Given]:
    """Yields each value of the file: one for each key inside a section, and one for each other name."""
    sections = {field.name for field in dataclasses.fields(Config) if dataclasses.is_dataclass(field.type)}
    for name, value in document.tree.items():
        path: KeyPath = (name if isinstance(name, str) else show(name),)
        if name not in sections or not isinstance(value, dict):
            yield _Given(path, value, document.source(path))
            continue
        for inner, inner_value in value.items():
            inside = (*path, inner if isinstance(inner, str) else show(inner))
            yield _Given(inside, inner_value, document.source(inside))


def _flag_values(overrides: Sequence[str], problems: list[str]) -> Iterator[_Given]:
    """Splits `a.b=value` into the path ("a", "b") and the value."""
    for override in overrides:
        key, equals, text = override.partition("=")
        path = tuple(part.strip() for part in key.split("."))
        if not equals or not all(path):
            problems.append(problem(show(override), "malformed", "section.key=value", source=_FLAG))
        elif len(path) > MAX_LEVELS:
            wrong = f"nested more than {MAX_LEVELS} levels deep"
            problems.append(problem(show(override), wrong, "section.key=value", source=_FLAG))
        else:
            try:
                yield _Given(path, parse_value(text), _FLAG)
            except ValueError as error:
                wrong = f"{show(text)} is broken YAML: {error}"
                problems.append(problem(".".join(path), wrong, "a YAML value", source=_FLAG))


def _agent_class(
    given: Sequence[_Given], document: Document, find_agent_class: FindAgentClass, problems: list[str]
) -> type[AgentConfig] | None:
    """Returns the class of the agent section; None if agent.name does not name an algorithm."""
    name, source = "", document.name
    for each in given:
        if each.path == ("agent", "name"):
            name, source = each.value, each.source
    if name == "" and (not document.usable or any(each.path == ("agent",) for each in given)):
        return None  # The whole document or section is unusable, which is reported elsewhere.
    try:
        return find_agent_class(name)
    except ConfigurationError as error:
        problems += (with_source(line, {"agent.name": source}) for line in error.problems)
        return None


def _merge(
    given: Sequence[_Given], keys: Mapping[str, Key], agent_known: bool, problems: list[str]
) -> dict[str, tuple[Any, str]]:
    """Gathers the value and source of each known key; the last one counts."""
    by_path = {tuple(key.split(".")): key for key in keys}  # A name in a file may have a dot itself.
    merged: dict[str, tuple[Any, str]] = {}
    for each in given:
        dotted = ".".join(each.path)
        key = by_path.get(each.path[:1]) or by_path.get(each.path[:2])
        inside = each.path[key.count(".") + 1 :] if key else ()
        if key and not inside:
            merged[key] = each.value, each.source
        elif key and keys[key].kind is not dict:
            allowed = f"{key} itself ({keys[key]})"
            problems.append(problem(dotted, "unknown key", allowed, source=each.source))
        elif key:
            # Sets one entry of a mapping such as environment.kwargs and keeps the other entries.
            before, source = merged.get(key, ({}, _FLAG))
            if isinstance(before, dict):
                source = source if source.endswith(_FLAG) else f"{source} and {_FLAG}"
                merged[key] = _with_entry(before, inside, each.value), source
        elif members := _members(keys, dotted):
            wrong = "given for a whole section" if each.source == _FLAG else "is not a mapping"
            allowed = f"a mapping with any of {', '.join(members)}"
            problems.append(problem(dotted, f"{show(each.value)} {wrong}", allowed, source=each.source))
        elif agent_known or each.path[0] != "agent":
            problems.append(_unknown_problem(each, keys))
    if not agent_known:
        merged.pop("agent.name", None)  # Reported already.
    return merged


def _members(keys: Mapping[str, Key], section: str) -> list[str]:
    """Returns the names in a section: the top-level names for "", none if `section` is not a section."""
    prefix = f"{section}." if section else ""
    names = (key.removeprefix(prefix).partition(".")[0] for key in keys if key.startswith(prefix))
    return list(dict.fromkeys(names))


def _unknown_problem(given: _Given, keys: Mapping[str, Key]) -> str:
    section = given.path[0] if len(given.path) > 1 and _members(keys, given.path[0]) else ""
    above, (name, *below) = ((section,), given.path[1:]) if section else ((), given.path)
    if name in keys and "." in name:
        nested, _, inner = name.rpartition(".")
        allowed = f"{inner} inside a section {nested}"
        return problem(name, "written with a dot", allowed, source=given.source)
    members = _members(keys, section)
    meant = [".".join((*above, close, *below)) for close in closest(name, members)]
    meant = meant or [key for key in keys if key.endswith(f".{given.path[-1]}")]
    allowed = ", ".join(members) + (f" in section {section}" if section else "")
    wrong = f"unknown key with value {show(given.value)}"
    return problem(".".join(given.path), wrong, allowed, meant, given.source)


def _with_entry(mapping: dict[Any, Any], path: KeyPath, value: Any) -> dict[Any, Any]:
    """Returns a copy of `mapping` with one entry, some levels down, set."""
    name, *below = path
    if not below:
        return {**mapping, name: value}
    inner = mapping.get(name)
    return {**mapping, name: _with_entry(inner if isinstance(inner, dict) else {}, tuple(below), value)}
