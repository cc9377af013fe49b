"""The JSON Schema of configurations, for editors."""

import json
from typing import Any

import jsonschema
import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.agents.json_schema import SCHEMA, schema_text
from actorlearner.config.document import parse_value, read_document
from actorlearner.config.resolved import to_yaml
from actorlearner.config.shipped import shipped_configs


def refused(tree: Any) -> bool:
    return not jsonschema.Draft7Validator(json.loads(schema_text())).is_valid(tree)


def test_the_committed_schema_is_current() -> None:
    assert SCHEMA.read_text("utf-8") == schema_text(), "run python -m actorlearner.agents.json_schema"
    jsonschema.Draft7Validator.check_schema(json.loads(schema_text()))


@pytest.mark.parametrize("name", shipped_configs())
def test_shipped_configurations_name_the_schema_and_are_valid(name: str) -> None:
    text = shipped_configs()[name].read_text("utf-8")
    assert text.startswith("# yaml-language-server: $schema=schema.json\n")
    jsonschema.validate(read_document(name).tree, json.loads(schema_text()))
    jsonschema.validate(parse_value(to_yaml(load_config(name))), json.loads(schema_text()))


def test_the_schema_is_no_shipped_configuration() -> None:
    assert SCHEMA.stem not in shipped_configs()


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "agent: {name: reinforce}",
        "agent: {name: td3, initial_alpha: 1}",
        "agent: {name: sac, gamma: 1.1}",
        "agent: {name: sac, actor_layers: [0]}",
        "agent: {name: sac, td_loss: cubic}",
        "{agent: {name: sac}, learn: {batch_size: '256'}}",
        "{agent: {name: sac}, learn: {batch_szie: 256}}",
        "{agent: {name: sac}, sed: 1}",
    ],
)
def test_mistakes_are_refused(text: str) -> None:
    assert refused(parse_value(text))


def test_null_is_valid_where_it_is_declared() -> None:
    assert not refused(parse_value("{agent: {name: sac, gradient_clipping: null}}"))
