"""A small algorithm for the tests of the configuration, and shorthands for loading YAML text."""

import dataclasses
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Optional

import pytest

from actorlearner.agents import registry
from actorlearner.config.load import load_config
from actorlearner.config.schema import AgentConfig, Config
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError


@dataclasses.dataclass(frozen=True)
class FakeConfig(AgentConfig):
    name: str = setting("fake", "The algorithm.")
    gamma: float = setting(0.99, "Discount.", at_least=0, at_most=1)
    layers: list[int] = setting([256, 256], "Units.", at_least=1)
    rates: list[float] = setting([], "Rates.")
    clipping: Optional[float] = setting(None, "Largest norm.", above=0)
    loss: str = setting("huber", "The loss.", choices=("huber", "mse"))
    debug: bool = setting(False, "Whether to debug.")


class FakeBuilder:
    config_class = FakeConfig


@pytest.fixture(autouse=True)
def fake_class(monkeypatch: pytest.MonkeyPatch) -> type[AgentConfig]:
    """The keys of the algorithm `fake`, which is all that the registry knows, but for `other`."""
    module = types.ModuleType("fake_agent")
    module.FakeBuilder = FakeBuilder
    monkeypatch.setitem(sys.modules, "fake_agent", module)
    monkeypatch.setattr(registry, "_BUILDERS", {"fake": "fake_agent:FakeBuilder", "other": "nowhere:X"})
    return FakeConfig


@pytest.fixture
def load_text(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Config]:
    """Loads YAML text as the file exp.yaml; the agent is `fake` unless the text has an agent section."""
    monkeypatch.chdir(tmp_path)

    def load_text(text: str, *overrides: str) -> Config:
        if not text.startswith("agent:") and "\nagent:" not in text:
            text += "\nagent: {name: fake}\n"
        pathlib.Path("exp.yaml").write_text(text)
        return load_config("exp.yaml", overrides)

    return load_text


@pytest.fixture
def problems_of(load_text: Callable[..., Config]) -> Callable[..., tuple[str, ...]]:
    """The problems of YAML text, which must have some, each in one line."""

    def problems_of(text: str, *overrides: str) -> tuple[str, ...]:
        with pytest.raises(ConfigurationError) as error:
            load_text(text, *overrides)
        problems = error.value.problems
        assert all(len(problem.splitlines()) == 1 for problem in problems)
        return problems

    return problems_of
