"""The documentation of configuration keys, as text."""

import textwrap

from actorlearner.config.keys import Key, config_keys
from actorlearner.config.problems import Sources, closest, problem, show
from actorlearner.config.resolved import declared_values
from actorlearner.config.schema import AgentClasses, Config
from actorlearner.errors import ConfigurationError

_WIDTH = 80
_INDENT = "  "
_SUGGESTIONS = 3


def explain(
    name: str, agent_classes: AgentClasses, config: Config | None = None, sources: Sources | None = None
) -> str:
    """Returns the documentation, allowed values and default of a key or of every key of a section.

    Args:
      name: a dotted key, as in learn.batch_size; or a section, as in learn.
      agent_classes: the registered algorithms.
      config: a configuration whose values are shown as well; None shows none.
      sources: where the values of its keys come from.

    Raises:
      ConfigurationError: no such key exists.
    """
    if config is not None:
        agent_classes = {config.agent.name: type(config.agent)}
    documented = _documented(agent_classes)
    found = [entry for entry in documented if entry[0] == name or entry[0].startswith(f"{name}.")]
    if not found:
        known = all_keys(agent_classes)
        sections = dict.fromkeys(key.partition(".")[0] for key in known if "." in key)
        allowed = f"a key, as in learn.batch_size, or a section: {', '.join(sections)}"
        meant = closest(name, known, _SUGGESTIONS)
        raise ConfigurationError([problem("--explain", f"there is no key {name!r}", allowed, meant)])
    values = {} if config is None else declared_values(config)
    texts = []
    for key, declared, agents in found:
        text = _explain_key(key, declared, agents)
        if key in values and sources is not None:
            text += f"\n{_INDENT}here:    {show(values[key])} ({sources[key]})"
        texts.append(text)
    return "\n\n".join(texts)


def all_keys(agent_classes: AgentClasses) -> list[str]:
    """Returns the names of all keys, of every algorithm."""
    return list(dict.fromkeys(key for each in agent_classes.values() for key in config_keys(each)))


def _documented(agent_classes: AgentClasses) -> list[tuple[str, Key, list[str]]]:
    """Returns every key with its name and the algorithms that declare it so; no algorithms if all do."""
    entries: dict[str, tuple[str, Key, list[str]]] = {}
    for agent, agent_class in agent_classes.items():
        for name, key in config_keys(agent_class).items():
            entries.setdefault(f"{name} {key!r}", (name, key, []))[2].append(agent)
    return [
        (name, key, [] if len(agents) == len(agent_classes) else agents)
        for name, key, agents in entries.values()
    ]


def _explain_key(name: str, key: Key, agents: list[str]) -> str:
    title = name + (f" (of {' and '.join(agents)})" if agents else "")
    doc = textwrap.fill(
        key.doc, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )
    return f"{title}\n{doc}\n{_INDENT}allowed: {key}\n{_INDENT}default: {show(key.default)}"
