"""The complete configuration as text, its fingerprint, and the differences between two of them."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from actorlearner.config.document import dump
from actorlearner.config.keys import config_keys, section_keys
from actorlearner.config.problems import show
from actorlearner.config.schema import Config

_FINGERPRINT_DIGITS = 16

_NOT_IN_FINGERPRINT = ("callbacks",)
"""Keys in which the roles of a run may differ, and which may change when a run is resumed."""


def to_yaml(config: Config) -> str:
    """Returns every key and its value as YAML, which loads as an equal Config."""
    return dump(_tree(config))


def canonical(config: Config | Mapping[str, Any]) -> str:
    """Returns JSON text that is equal for configurations of one experiment, on any machine.

    Args:
      config: the configuration; or the tree of a file that `to_yaml` wrote.
    """
    tree = config if isinstance(config, Mapping) else _tree(config)
    return json.dumps(_experiment(tree), sort_keys=True, separators=(",", ":"))


def fingerprint(config: Config) -> str:
    """Returns 16 hexadecimal digits of the canonical text's hash."""
    return hashlib.sha256(canonical(config).encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def values_by_key(config: Config) -> dict[str, Any]:
    """Returns every value in the fingerprint by its dotted key; the entries of a mapping have own keys."""
    return _flat(_experiment(_tree(config)))


def declared_values(config: Config) -> dict[str, Any]:
    """Returns the value of each declared key by its dotted name; a mapping is one value."""
    values: dict[str, Any] = {}
    for key in config_keys(type(config.agent)):
        section, _, name = key.rpartition(".")
        values[key] = getattr(getattr(config, section) if section else config, name)
    return values


def differences(here: str, there: str) -> list[str]:
    """Returns one line for each key that differs in two canonical texts.

    A line is like `learn.batch_size: 256 here, 128 there`.
    """
    ours, theirs = _flat(json.loads(here)), _flat(json.loads(there))
    return [
        f"{key}: {_shown(ours, key)} here, {_shown(theirs, key)} there"
        for key in dict.fromkeys((*ours, *theirs))
        # As text, because 1, 1.0 and true are equal in Python.
        if key not in ours or key not in theirs or json.dumps(ours[key]) != json.dumps(theirs[key])
    ]


def _shown(values: dict[str, Any], key: str) -> str:
    return show(values[key]) if key in values else "absent"


def _experiment(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name not in _NOT_IN_FINGERPRINT}


def _tree(section: Any) -> dict[str, Any]:
    """Returns a dataclass as nested plain values, in the one form that equal configurations share."""
    return {
        name: _tree(getattr(section, name)) if key is None else key.normalised(getattr(section, name))
        for name, key in section_keys(type(section)).items()
    }


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
