"""Makes a Config out of a YAML file and `--set` overrides, or says everything that is wrong with them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

from omegaconf import OmegaConf, read_write

from actorlearner.config.checks import SUITES, Check, cross_problems
from actorlearner.config.document import MAX_LEVELS, Document, Path, parse_value, read_document
from actorlearner.config.interpolation import InterpolationError, Interpolator, escape, is_interpolated
from actorlearner.config.keys import Key, Section, as_declared, config_keys, dotted_keys
from actorlearner.config.problems import DEFAULT_SOURCE, Sources, closest, problem, show
from actorlearner.config.schema import AgentConfig, Config
from actorlearner.errors import ConfigurationError

_FLAG = "--set"


@dataclasses.dataclass(frozen=True)
class _Given:
    """A value for a key and where it comes from."""

    value: Any
    source: str


def load_with_sources(
    path: str,
    overrides: Sequence[str],
    agent_classes: Mapping[str, type[AgentConfig]],
    checks: Sequence[Check] = (),
) -> tuple[Config, Sources]:
    """Loads a configuration file, with overrides on top.

    Args:
      path: a YAML file, or the name of a shipped configuration.
      overrides: `section.key=value` each, the value in YAML; the last one for a key counts.
      agent_classes: the class of the agent section for each value of `agent.name`.
      checks: further checks of the whole configuration.

    Returns:
      The complete configuration, whose agent section has the algorithm's own class; and where the value of
      each key comes from.

    Raises:
      ConfigurationError: with every problem of the file, the overrides and their combination.
    """
    document = read_document(path)
    problems = list(document.problems)
    flags = _parse_overrides(overrides, problems)
    agent_class = _agent_class(document, flags, agent_classes, problems)
    merge = _Merge(document, config_keys(agent_class), problems)
    merge.add_file(document.tree, merge.keys, ())
    for key_path, value in flags:
        merge.add_flag(key_path, value)
    if agent_class is None:
        merge.given.pop("agent.name", None)  # Reported already.
    defaults = Config(agent=(agent_class or AgentConfig)())
    config, broken = _build(merge.given, dotted_keys(merge.keys), defaults, problems)
    if config.environment.suite not in SUITES and "environment.name" not in merge.given:
        # The default is the name of an environment of another suite.
        config = dataclasses.replace(config, environment=dataclasses.replace(config.environment, name=""))
    sources = dict.fromkeys(dotted_keys(merge.keys), DEFAULT_SOURCE)
    sources |= {key: given.source for key, given in merge.given.items()}
    if document.usable:
        every: tuple[Check, ...] = (cross_problems, *checks)
        for check in every:
            problems += check(config, sources, broken)
    if problems:
        raise ConfigurationError(problems)
    return config, sources


def _parse_overrides(overrides: Sequence[str], problems: list[str]) -> list[tuple[Path, Any]]:
    """Splits `a.b=value` into (("a", "b"), value)."""
    parsed = []
    for override in overrides:
        key, equals, text = override.partition("=")
        path = tuple(part.strip() for part in key.split("."))
        if not equals or not all(path):
            problems.append(problem(show(override), "malformed", _FLAG, "section.key=value"))
            continue
        if len(path) > MAX_LEVELS:
            wrong = f"nested more than {MAX_LEVELS} levels deep"
            problems.append(problem(show(override), wrong, _FLAG, "section.key=value"))
            continue
        try:
            parsed.append((path, parse_value(text)))
        except ValueError as error:
            problems.append(
                problem(".".join(path), f"{show(text)} is broken YAML: {error}", _FLAG, "a YAML value")
            )
    return parsed


def _agent_class(
    document: Document,
    flags: Sequence[tuple[Path, Any]],
    agent_classes: Mapping[str, type[AgentConfig]],
    problems: list[str],
) -> type[AgentConfig] | None:
    """Finds the class of the agent section; None if agent.name is not the name of an algorithm.

    The name must be written out: which keys there are depends on it, so it cannot be computed from one.
    """
    section = document.tree.get("agent", {})
    source = document.source(("agent", "name"))
    name: Any = section.get("name", "") if isinstance(section, dict) else ""
    for path, value in flags:
        if path == ("agent", "name"):
            name, source = value, _FLAG
    if isinstance(name, str) and name in agent_classes:
        return agent_classes[name]
    names = sorted(agent_classes)
    if isinstance(name, str) and name:
        wrong = f"unknown agent {show(name)}"
        problems.append(problem("agent.name", wrong, source, ", ".join(names), closest(name, names)))
    elif isinstance(section, dict) and document.usable:
        wrong = f"{show(name)} is of the wrong type" if name != "" else "is not given"
        problems.append(problem("agent.name", wrong, source, ", ".join(names)))
    return None


class _Merge:
    """Gathers the values that the file and the flags give to known keys."""

    def __init__(self, document: Document, keys: Section, problems: list[str]) -> None:
        self.keys = keys
        self.given: dict[str, _Given] = {}
        self._document = document
        self._problems = problems

    def add_file(self, tree: Mapping[Any, Any], section: Section, above: Path) -> None:
        """Takes over what the file says below `above`."""
        for name, value in tree.items():
            path = (*above, name if isinstance(name, str) else show(name))
            source = self._document.source(path)
            member = section.members.get(path[-1])
            if member is None:
                self._refuse_unknown(section, path, value, source)
            elif isinstance(member, Key):
                self.given[".".join(path)] = _Given(value, source)
            elif isinstance(value, dict):
                self.add_file(value, member, path)
            else:
                self._refuse_section(member, path, f"{show(value)} is not a mapping", source)

    def add_flag(self, path: Path, value: Any) -> None:
        """Takes over one override."""
        member: Key | Section = self.keys
        for depth, name in enumerate(path):
            if isinstance(member, Key):
                self._add_inside(member, path[:depth], path[depth:], value)
                return
            below = member.members.get(name)
            if below is None:
                self._refuse_unknown(member, path, value, _FLAG, path[depth + 1 :])
                return
            member = below
        if isinstance(member, Key):
            self.given[".".join(path)] = _Given(value, _FLAG)
        else:
            self._refuse_section(member, path, f"{show(value)} given for a whole section", _FLAG)

    def _add_inside(self, key: Key, path: Path, inside: Path, value: Any) -> None:
        """Sets one entry of a mapping such as environment.kwargs, and keeps its others."""
        dotted = ".".join(path)
        if not key.is_mapping:
            self._problems.append(
                problem(".".join((*path, *inside)), "unknown key", _FLAG, f"{dotted} itself ({key})")
            )
            return
        before = self.given.get(dotted, _Given({}, _FLAG))
        if isinstance(before.value, str) and is_interpolated(before.value):
            wrong = f"cannot be set inside {show(before.value)}"
            self._problems.append(problem(".".join((*path, *inside)), wrong, _FLAG, f"{dotted} itself"))
        elif isinstance(before.value, dict):
            source = before.source if before.source == _FLAG else f"{before.source} and {_FLAG}"
            self.given[dotted] = _Given(_with_entry(before.value, inside, value), source)

    def _refuse_unknown(
        self, section: Section, path: Path, value: Any, source: str, below: Path = ()
    ) -> None:
        """Reports a name that `section` does not have; `below` is what follows it in `path`."""
        if not section.complete:
            return
        *above, name = path[: len(path) - len(below)]
        known = dotted_keys(self.keys)
        if name in known:
            nested, _, inner = name.rpartition(".")
            allowed = f"{inner} inside a section {nested}"
            self._problems.append(problem(name, "written with a dot", source, allowed))
            return
        meant = [".".join((*above, close, *below)) for close in closest(name, section.members)]
        meant = meant or [key for key in known if key.endswith(f".{path[-1]}")]
        allowed = ", ".join(section.members) + (f" in section {'.'.join(above)}" if above else "")
        wrong = f"unknown key with value {show(value)}"
        self._problems.append(problem(".".join(path), wrong, source, allowed, meant))

    def _refuse_section(self, section: Section, path: Path, wrong: str, source: str) -> None:
        allowed = f"a mapping with any of {', '.join(section.members)}"
        self._problems.append(problem(".".join(path), wrong, source, allowed))


def _with_entry(mapping: dict[Any, Any], path: Path, value: Any) -> dict[Any, Any]:
    """A copy of `mapping` with one entry, some levels down, set."""
    name, *below = path
    if not below:
        return {**mapping, name: value}
    inner = mapping.get(name)
    return {**mapping, name: _with_entry(inner if isinstance(inner, dict) else {}, tuple(below), value)}


def _build(
    given: Mapping[str, _Given], keys: Mapping[str, Key], defaults: Config, problems: list[str]
) -> tuple[Config, set[str]]:
    """Merges the values into the typed tree.

    Returns:
      The configuration, with the default of every broken key; and the broken keys.
    """
    tree = OmegaConf.structured(defaults)
    values = {key: OmegaConf.select(tree, key) for key in keys}
    interpolator = Interpolator(values | {key: entry.value for key, entry in given.items()})
    broken = set()
    for key, entry in given.items():
        try:
            value = interpolator.resolve(key) if is_interpolated(entry.value) else entry.value
        except InterpolationError as error:
            complaint = f"{show(entry.value)} does not resolve: {error}"
        else:
            complaint = keys[key].complaint(value)
            complaint = f"{show(value)} {complaint}" if complaint else ""
        if complaint:
            broken.add(key)
            problems.append(problem(key, complaint, entry.source, str(keys[key])))
            continue
        section, _, name = key.rpartition(".")
        node = OmegaConf.select(tree, section) if section else tree
        with read_write(node):  # The dataclasses are frozen, and so are the nodes made of them.
            OmegaConf.update(node, name, escape(as_declared(value, keys[key].hint)), merge=False)
    return cast(Config, OmegaConf.to_object(tree)), broken
