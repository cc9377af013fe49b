"""An algorithm outside of the package is named in the configuration: module:Builder."""

import dataclasses
import sys

import numpy as np
import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.agents.dqn import DqnBuilder, DqnConfig
from actorlearner.agents.registry import find_builder
from actorlearner.config.resolved import to_yaml
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

CONFIG = "examples/dueling_dqn.yaml"
NAME = "examples.dueling_dqn:DuelingDqnBuilder"


class NoBuilder:
    """An invalid builder: it has no config_class."""


class Exits:
    """An invalid builder."""

    def __init__(self):
        sys.exit("no licence")


@dataclasses.dataclass(frozen=True)
class UndeclaredConfig(DqnConfig):
    """An invalid configuration class."""

    entropy: float = 0.1


class Undeclared(DqnBuilder):
    """An invalid builder."""

    config_class = UndeclaredConfig


class UndecoratedConfig(DqnConfig):
    """An invalid configuration class: it is no dataclass, so that its key would be unknown."""

    entropy: float = setting(0.1, "Weight of the entropy.")


class Undecorated(DqnBuilder):
    """An invalid builder."""

    config_class = UndecoratedConfig


def test_its_keys_are_checked_and_written_like_all_others(tmp_path):
    config = load_config(CONFIG, ["agent.epsilon=0.2"])
    assert config.agent.name == NAME
    assert config.agent.epsilon == 0.2
    (tmp_path / "config.yaml").write_text(to_yaml(config))
    assert load_config(str(tmp_path / "config.yaml")) == config
    with pytest.raises(ConfigurationError) as refusal:
        load_config(CONFIG, ["agent.epsilon=2", "agent.no_such_key=1"])
    assert [line.split(" ")[0] for line in refusal.value.problems] == ["agent.no_such_key:", "agent.epsilon:"]


def test_its_agent_trains(discrete, agents, batches):
    agent = agents(NAME, discrete)
    before = [variable.numpy() for variable in agent.policy.variables()]
    assert np.isfinite(agent.train(batches(discrete, [1.0, 0.0, 1.0]).transition()).loss)
    after = [variable.numpy() for variable in agent.policy.variables()]
    assert any(np.any(old != new) for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("examples.dueling_dqn:Missing", "has no attribute 'Missing'"),
        ("no_such_module:Builder", "No module named 'no_such_module'"),
        (f"{__name__}:NoBuilder", "it is no AgentBuilder"),
        (f"{__name__}:Exits", "SystemExit: no licence"),
        (f"{__name__}:Undeclared", "TypeError: entropy is not declared by setting(...)"),
        (f"{__name__}:Undecorated", "TypeError: UndecoratedConfig has keys, but is no dataclass"),
        ("json:dumps", "missing 1 required positional argument"),
        (":", "Empty module name"),
    ],
)
def test_a_name_that_cannot_be_imported_is_refused_in_one_line(name, reason):
    with pytest.raises(ConfigurationError) as refusal:
        load_config(CONFIG, [f"agent.name='{name}'"])
    (line,) = refusal.value.problems
    assert line.startswith(f'agent.name: "{name}" cannot be loaded: ')
    assert reason in line
    assert "(--set); allowed: module:Builder" in line


def test_unknown_names_list_what_is_allowed():
    with pytest.raises(ConfigurationError, match=r"did you mean dqn\? allowed: c51, ddpg, dqn, "):
        find_builder("dqnn")
