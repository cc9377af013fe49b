"""Bad configurations derived from the schema: every key with every kind of value that it refuses."""

import random
from collections.abc import Iterator, Mapping

from actorlearner.agents import registry
from actorlearner.config.keys import Key, config_keys
from tests.support.bad_case import GOOD, LOCAL, Case, from_flags, from_text

_SEED = 20_240_229
_MUTANTS = 60

# For each type, YAML that is not of it.
_WRONG = {
    int: ["'3'", "text", "''", "true", "1.5", "1e6", ".nan", ".inf", "[1]", "{a: 1}", "2020-01-01"],
    float: ["'0.5'", "text", "''", "true", ".nan", ".inf", "-.inf", "1e999", "[0.5]", "{a: 1}"],
    bool: ["1", "0", "1.0", "'true'", "text", "''", "[true]", "{a: true}"],
    str: ["3", "1.5", "true", "[text]", "{a: b}", '"\\ud800"'],
    list: ["3", "text", "''", "true", "{a: 1}", "[text]", "[1.5]", "[true]", "[[1]]", "[null]", "[.nan]"],
    dict: ["3", "text", "''", "true", "[1]", "{1: 2}", "{a: .nan}", "{a: !!binary aGk=}"],
}
_HUGE = [str(2**63), str(-(2**63) - 1), "9" * 5_000, "0x" + "f" * 5_000]


def key_cases() -> Iterator[Case]:
    """Yields every key of every agent, alternately in the file and as a flag."""
    for number, (agent, key, value) in enumerate(_bad_values()):
        name = f"{agent} {key}={value[:40]}"
        if number % 2:
            yield from_flags("key", name, f"{key}: ", f"agent.name={agent}", f"{key}={value}")
        else:
            expected = f"{key}: " if _is_yaml(value) else "{config}:"
            yield from_text("key", name, expected, _file(agent, {key: value}))


def misspelt_cases() -> Iterator[Case]:
    """Yields every key with an additional letter, or a letter in the wrong place."""
    for agent, key, _ in _keys():
        section, _, name = key.rpartition(".")
        for wrong in (f"{name}{name[-1]}", f"{name[1:]}{name[0]}", f"{name}-", name.upper()):
            dotted = f"{section}.{wrong}" if section else wrong
            flags = (f"agent.name={agent}", f"{dotted}=3")
            yield from_flags(
                "misspelt key", f"{agent} {dotted}", f"{dotted}: unknown key with value 3", *flags
            )


def section_cases() -> Iterator[Case]:
    """Yields every section replaced by a value without keys."""
    for name in ("environment", "agent", "replay", "collect", "learn", "evaluate"):
        for value in ("3", "text", "true", "null", "''", "[]", "[a, b]"):
            expected = f"{name}: "
            # A section given twice is another mistake, so that the file has no other.
            rest = "".join(line for line in GOOD.splitlines(True) if not line.startswith(name))
            yield from_text("section", f"{name}: {value} in the file", expected, f"{rest}{name}: {value}\n")
            yield from_flags("section", f"{name}={value}", expected, f"{name}={value}")


def combined_cases() -> Iterator[Case]:
    """Yields keys that are valid by themselves and cannot work together."""
    for overrides, expected in (
        (("replay.capacity=10",), "replay.min_size: 1000 cannot work"),
        (("replay.min_size=1000001",), "replay.min_size: 1000001 cannot work"),
        (("replay.capacity=137438953409",), "replay.capacity: 137438953409 cannot work"),
        (("replay.layout=trajectory", "replay.capacity=2147483648"), "replay.capacity: 2147483648 cannot"),
        (("replay.updates_per_env_step=1", "replay.error_buffer=4"), "replay.error_buffer: 4.0 cannot work"),
        (("replay.updates_per_env_step=1e-6", "replay.error_buffer=64"), "replay.error_buffer: 64.0 cannot"),
        (("learn.strategy=mirrored:3",), "learn.batch_size: 256 cannot work"),
        (("learn.strategy=mirrored:2", "learn.batch_size=1"), "learn.batch_size: 1 cannot work"),
        (("learn.strategy=mirrored:65",), 'learn.strategy: unknown strategy "mirrored:65"'),
        (("learn.strategy='mirrored:0'",), 'learn.strategy: unknown strategy "mirrored:0"'),
        (("learn.strategy=gpu",), 'learn.strategy: unknown strategy "gpu"'),
        (("agent.name=td3", "agent.initial_alpha=1"), "agent.initial_alpha: unknown key"),
        (("agent.name=dqn", "agent.actor_layers=[1]"), "agent.actor_layers: unknown key"),
        (("agent.name=reinforce",), 'agent.name: unknown agent "reinforce"'),
        (("agent.name=SAC",), 'agent.name: unknown agent "SAC"'),
        (("environment.suite=pybullet", "environment.name=''"), 'environment.name: "" cannot work'),
        (("environment.kwargs={gravity: 1}",), 'environment.kwargs: {"gravity": 1} cannot be passed'),
        (("seed=${learn.batch_size}",), 'seed: "${learn.batch_size}" is of the wrong type'),
    ):
        yield from_flags("combination", " ".join(overrides), expected, *overrides)


def mutated_cases() -> Iterator[Case]:
    """Yields good files with some bad values, all of which must be reported; always the same."""
    chance = random.Random(_SEED)
    bad: dict[str, dict[str, list[str]]] = {}
    for agent, key, value in _bad_values():
        if key != "agent.name":  # The other keys of the agent depend on it.
            bad.setdefault(agent, {}).setdefault(key, []).append(value)
    for number in range(_MUTANTS):
        agent = chance.choice(sorted(bad))
        # Keys outside the agent section are listed for the first agent only.
        known = _known(agent)
        values = {key: found for key, found in {**bad["sac"], **bad[agent]}.items() if key in known}
        keys = chance.sample(sorted(values), chance.randint(1, 8))
        given = {key: chance.choice(values[key]) for key in keys}
        # Broken YAML hides every other problem.
        given = {key: value for key, value in given.items() if _is_yaml(value)} or {"seed": "-1"}
        in_file = {key: value for key, value in given.items() if chance.random() < 0.7}
        flags = [f"{key}={value}" for key, value in given.items() if key not in in_file]
        yield Case(
            "mutated keys",
            str(number),
            tuple(f"{key}: " for key in given),
            _file(agent, in_file).encode(),
            (*LOCAL, "--set", *flags) if flags else LOCAL,
        )


def _known(agent: str) -> Mapping[str, Key]:
    return config_keys(registry.find_builder(agent).config_class)


def _keys() -> Iterator[tuple[str, str, Key]]:
    """Yields (agent, key, declaration): the keys of each agent, and all others once."""
    seen: set[tuple[str, str]] = set()
    for agent in ("sac", *registry.agent_classes()):
        for key, declared in _known(agent).items():
            place = (agent if key.startswith("agent.") else "", key)
            if place not in seen:
                seen.add(place)
                yield agent, key, declared


def _bad_values() -> Iterator[tuple[str, str, str]]:
    """Yields (agent, key, YAML that the key refuses)."""
    for agent, key, declared in _keys():
        kind, element = declared.kind, declared.element
        values = [*_WRONG[kind], *([] if declared.optional else ["null"])]
        if kind is list and element is str:
            values.remove("[text]")
        if int in (kind, element):
            values += [f"[{huge}]" if kind is list else huge for huge in _HUGE]
        values += [f"[{value}]" if kind is list else value for value in _outside(declared, element)]
        for value in values:
            yield agent, key, value


def _outside(declared: Key, element: type) -> Iterator[str]:
    """Yields the nearest values outside the range of a key, and some far outside."""
    step = 1 if element is int else 0.5
    if declared.at_least is not None:
        yield from (str(declared.at_least - step), str(-(10**9)))
    if declared.above is not None:
        yield from (str(declared.above), "-0.0", str(declared.above - step), "-1e300")
    if declared.at_most is not None:
        yield from (str(declared.at_most + step), str(declared.at_most * 10**9 + 1))
    for choice in declared.choices:
        yield from (choice.upper(), f"'{choice} '", choice[:-1])
    if declared.choices:
        yield "''"


def _is_yaml(value: str) -> bool:
    """Returns False for integers with more digits than Python reads or writes."""
    return not value.startswith(("9" * 5_000, "0xfff", "[999", "[0xfff"))


def _file(agent: str, values: Mapping[str, str]) -> str:
    sections: dict[str, list[str]] = {
        "environment": ["suite: gym", "name: Pendulum-v1"],
        "agent": [f"name: {agent}"],
    }
    text = ""
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        entry = f"{name}: {value}"
        if not section:
            text += f"{entry}\n"
            continue
        entries = sections.setdefault(section, [])
        entries[:] = [each for each in entries if not each.startswith(f"{name}:")]
        entries.append(entry)
    return text + "".join(f"{name}: {{{', '.join(entries)}}}\n" for name, entries in sections.items())
