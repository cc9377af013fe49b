"""Writes configs/schema.json, with which editors check and complete configuration files.

Run `python -m actorlearner.agents.json_schema` after a change of the declared keys.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

from actorlearner.agents.registry import agent_classes
from actorlearner.config.keys import Key, config_keys

SCHEMA = pathlib.Path(__file__).parents[2] / "configs" / "schema.json"

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object", list: "array"}

_OWN_AGENT = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": ":", "description": "module:Builder."}},
    "required": ["name"],
}
"""An algorithm outside of this package, whose keys the schema does not know."""


def schema_text() -> str:
    """Returns the JSON Schema of all configurations; the agent section has one form for each algorithm."""
    sections: dict[str, dict[str, Any]] = {}
    agents = []
    for name, agent_class in agent_classes().items():
        sections = {}
        for dotted, key in config_keys(agent_class).items():
            section, _, inner = dotted.rpartition(".")
            sections.setdefault(section, {})[inner] = _key_schema(key)
        sections["agent"]["name"] = {"const": name, "description": sections["agent"]["name"]["description"]}
        agents.append(_mapping(sections["agent"], ["name"]))
    agents.append(_OWN_AGENT)
    # All sections but the agent's are the same for every algorithm.
    properties = {name: _mapping(keys) for name, keys in sections.items() if name} | sections[""]
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A configuration of actorlearner",
        **_mapping(properties | {"agent": {"oneOf": agents}}, ["agent"]),
    }
    return json.dumps(schema, indent=2) + "\n"


def _mapping(properties: Mapping[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": required} if required else schema


def _key_schema(key: Key) -> dict[str, Any]:
    limits = {
        "minimum": key.at_least,
        "exclusiveMinimum": key.above,
        "maximum": key.at_most,
        "enum": list(key.choices) or None,
    }
    value = {name: limit for name, limit in limits.items() if limit is not None}
    kind = _TYPES[key.kind]
    schema: dict[str, Any] = {"type": [kind, "null"] if key.optional else kind}
    if key.kind is list:
        schema["items"] = {"type": _TYPES[key.element], **value}
    else:
        schema |= value
    return schema | {"default": key.default, "description": key.doc}


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), "utf-8")
