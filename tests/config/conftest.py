"""Shorthands for loading YAML text."""

import pathlib
from collections.abc import Callable

import pytest

from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from tests.support.fake_agent import load_config


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
    """The problems of invalid YAML text, one line each."""

    def problems_of(text: str, *overrides: str) -> tuple[str, ...]:
        with pytest.raises(ConfigurationError) as error:
            load_text(text, *overrides)
        problems = error.value.problems
        assert all(len(problem.splitlines()) == 1 for problem in problems)
        return problems

    return problems_of
