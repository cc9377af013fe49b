"""The complete configuration as text, its fingerprint, and how two of them differ."""

import dataclasses
import hashlib
import json
import typing
from collections.abc import Mapping
from typing import Any

from actorlearner.config.document import dump
from actorlearner.config.interpolation import escape
from actorlearner.config.keys import as_declared, config_keys, dotted_keys
from actorlearner.config.problems import show
from actorlearner.config.schema import Config

_FINGERPRINT_DIGITS = 16

_LOOK_ON = ("callbacks",)
"""Keys in which roles of one experiment may differ, and a run that is resumed from what it was."""


def to_yaml(config: Config) -> str:
    """Every key and its value as YAML; `load_config` reads it back to an equal Config."""
    tree: dict[str, Any] = escape(_tree(config))
    return dump(tree)


def canonical(config: Config | Mapping[str, Any]) -> str:
    """Returns JSON text that is equal for configurations of one experiment, on any machine.

    Args:
      config: the configuration; or the tree of a file that `to_yaml` wrote.
    """
    tree = config if isinstance(config, Mapping) else _tree(config)
    return json.dumps(_experiment(tree), sort_keys=True, separators=(",", ":"))


def values_by_key(config: Config) -> dict[str, Any]:
    """Every value that decides on the experiment, as plain data by its dotted key.

    The entries of a mapping have keys of their own.
    """
    return _flat(_experiment(_tree(config)))


def fingerprint(config: Config) -> str:
    """16 hexadecimal digits of the canonical text."""
    return hashlib.sha256(canonical(config).encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def declared_values(config: Config) -> dict[str, Any]:
    """The value of each key that is declared, by its dotted name; a mapping is one value."""
    values: dict[str, Any] = {}
    for key in dotted_keys(config_keys(type(config.agent))):
        value: Any = config
        for name in key.split("."):
            value = getattr(value, name)
        values[key] = value
    return values


def differences(here: str, there: str) -> list[str]:
    """One line for each key that differs in two canonical texts: `learn.batch_size: 256 here, 128 there`."""
    ours, theirs = _flat(json.loads(here)), _flat(json.loads(there))
    return [
        f"{key}: {_shown(ours, key)} here, {_shown(theirs, key)} there"
        for key in dict.fromkeys((*ours, *theirs))
        if _canonical(ours, key) != _canonical(theirs, key)
    ]


def _shown(values: dict[str, Any], key: str) -> str:
    return show(values[key]) if key in values else "absent"


def _canonical(values: dict[str, Any], key: str) -> str:
    return json.dumps(values[key], sort_keys=True) if key in values else ""


def _experiment(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name not in _LOOK_ON}


def _tree(section: Any) -> dict[str, Any]:
    """A dataclass as nested plain values, in the one form that equal configurations share."""
    hints = typing.get_type_hints(type(section))
    tree: dict[str, Any] = {}
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        nested = dataclasses.is_dataclass(value)
        tree[field.name] = _tree(value) if nested else as_declared(value, hints[field.name])
    return tree


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat
