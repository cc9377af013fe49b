"""The documentation of configuration keys, as text."""

import textwrap
from collections.abc import Iterator, Mapping

from actorlearner.config.keys import Key, config_keys, dotted_keys
from actorlearner.config.problems import Sources, closest, problem, show
from actorlearner.config.resolved import declared_values
from actorlearner.config.schema import AgentConfig, Config
from actorlearner.errors import ConfigurationError

_WIDTH = 80
_INDENT = "  "
_CLOSE = 3


def explain(
    name: str,
    agent_classes: Mapping[str, type[AgentConfig]],
    config: Config | None = None,
    sources: Sources | None = None,
) -> str:
    """Says what a key is for, what it may be and what it is by default.

    Args:
      name: a dotted key, as in learn.batch_size; or a section, as in learn, of which every key is explained.
      agent_classes: the class of the agent section for each value of `agent.name`.
      config: in which the key has a value, which is then said, too; None for no configuration in particular.
      sources: where the values of its keys come from.

    Raises:
      ConfigurationError: there is no such key.
    """
    if config is not None:
        agent_classes = {config.agent.name: type(config.agent)}
    documented = _documented(agent_classes)
    found = [entry for entry in documented if entry[0] == name or entry[0].startswith(f"{name}.")]
    if not found:
        known = dict.fromkeys(key for key, _, _ in documented)
        sections = dict.fromkeys(key.partition(".")[0] for key in known if "." in key)
        meant = closest(name, known, _CLOSE)
        allowed = f"a key, as in learn.batch_size, or a section: {', '.join(sections)}"
        raise ConfigurationError([problem("--explain", f"there is no key {name!r}", "", allowed, meant)])
    values = None if config is None else declared_values(config)
    return "\n\n".join(
        "\n".join(_lines(key, declared, agents, values, sources or {})) for key, declared, agents in found
    )


def all_keys(agent_classes: Mapping[str, type[AgentConfig]]) -> list[str]:
    """The names of all keys, of every algorithm."""
    return list(dict.fromkeys(key for key, _, _ in _documented(agent_classes)))


def _documented(agent_classes: Mapping[str, type[AgentConfig]]) -> list[tuple[str, Key, tuple[str, ...]]]:
    """Every key of these algorithms, with those that have it as it is declared; none where all have it."""
    entries: dict[tuple[str, str], tuple[Key, list[str]]] = {}
    for agent, agent_class in agent_classes.items():
        for key, declared in dotted_keys(config_keys(agent_class)).items():
            same = (key, f"{declared} {declared.default!r} {declared.doc}")
            entries.setdefault(same, (declared, []))[1].append(agent)
    return [
        (key, declared, () if len(agents) == len(agent_classes) else tuple(agents))
        for (key, _), (declared, agents) in entries.items()
    ]


def _lines(
    key: str,
    declared: Key,
    agents: tuple[str, ...],
    values: Mapping[str, object] | None,
    sources: Sources,
) -> Iterator[str]:
    yield key + (f" (of {' and '.join(agents)})" if agents else "")
    yield from textwrap.wrap(
        declared.doc, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )
    yield f"{_INDENT}allowed: {declared}"
    yield f"{_INDENT}default: {show(declared.default)}"
    if values is not None:
        yield f"{_INDENT}here:    {show(values[key])} ({sources[key]})"
