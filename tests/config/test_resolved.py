"""The resolved configuration: reading it back, its fingerprint, and differences."""

import dataclasses
import pathlib
from typing import Any

import pytest

from actorlearner.config.load import load_with_sources
from actorlearner.config.resolved import canonical, differences, fingerprint, to_yaml
from actorlearner.config.schema import AgentConfig, Config, EnvironmentConfig, LearnConfig, ReplayConfig
from actorlearner.config.setting import setting
from actorlearner.errors import ConfigurationError

TEXTS = [
    "", " ", "text", "null", "~", "true", "yes", "on", "256", "-1", "0x1f", "0o17", "1_000", "1:30",
    "1e-3", "1E5", ".5", "5.", "-.5e-3", "1e", ".inf", ".nan", "2020-01-01", "2020-01-01 10:00:00", "=",
    "<<", "-", "- a", "a: b", "a #b", "#", "'", '"', "\\", "\\\\", "a\nb", "a\n", "\n", "\ta", "%",
    "@a", "`", "[1]", "{a: 1}", "&a", "*a", "!a", "|", ">", "???", "\\???", "a???", "${x}", "\\${x}",
    "\\\\${x}", "${", "$ {", "${seed}", "}", "é", "\u2028", "🤖", "\x07", "x" * 300, "a b " * 90,
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class FakeConfig(AgentConfig):
    name: str = setting("fake", "The algorithm.")
    gamma: float = setting(0.99, "Discount.")
    layers: list[int] = setting([256], "Units.")
    rates: list[float] = setting([], "Rates.")
    no_layers: list[int] | None = setting(None, "Null: none.")


@pytest.fixture
def reload(tmp_path: pathlib.Path):
    def reload(config: Config) -> Config:
        file = tmp_path / "config.yaml"
        file.write_text(to_yaml(config), encoding="utf-8")
        return load_with_sources(str(file), (), lambda name: FakeConfig)[0]

    return reload


def config_with(kwargs: Any = None, name: str = "X-v0", **agent: Any) -> Config:
    environment = EnvironmentConfig(name=name, kwargs=kwargs or {})
    return Config(agent=FakeConfig(**agent), environment=environment)


def test_every_key_is_written() -> None:
    text = to_yaml(config_with())
    for section in (FakeConfig, EnvironmentConfig, ReplayConfig, LearnConfig):
        for field in dataclasses.fields(section):
            assert f"\n  {field.name}:" in text
    assert "\nseed: 0\n" in text


def test_default_configuration_is_read_back_equal(reload) -> None:
    assert reload(config_with()) == config_with()


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_read_back_equal(reload, text: str) -> None:
    config = config_with({"value": text, text: [text, {"a": text}]}, name=text or "X")
    again = reload(config)
    assert again == config
    assert type(again.environment.kwargs["value"]) is str
    assert fingerprint(again) == fingerprint(config)
    assert reload(again) == config


@pytest.mark.parametrize(
    "number", [0, -1, 2**63 - 1, 10**30, 0.1, 1e-5, 1e22, 1e300, 5e-324, -0.0, float("inf"), True, None]
)
def test_numbers_are_read_back_equal(reload, number: Any) -> None:
    config = config_with({"value": number, "list": [number, number]})
    again = reload(config)
    assert again == config
    assert type(again.environment.kwargs["value"]) is type(number)


def test_shared_values_are_written_out(reload) -> None:
    shared = [1, 2]
    config = config_with({"a": shared, "b": shared}, layers=shared)
    assert "*" not in to_yaml(config)
    assert reload(config) == config


def test_fingerprint_has_16_hexadecimal_digits() -> None:
    assert len(fingerprint(config_with())) == 16
    int(fingerprint(config_with()), 16)


def test_fingerprint_does_not_depend_on_how_a_value_was_written() -> None:
    """A configuration made in Python may say 1 or (4, 5) where a file makes 1.0 and [4, 5]."""
    one = config_with({"a": 1, "b": 2}, gamma=1, layers=(4, 5), rates=[1])
    other = config_with({"b": 2, "a": 1}, gamma=1.0, layers=[4, 5], rates=[1.0])
    assert fingerprint(one) == fingerprint(other)
    assert sorted(to_yaml(one).splitlines()) == sorted(to_yaml(other).splitlines())
    assert differences(canonical(one), canonical(other)) == []


@pytest.mark.parametrize(
    "change", [{"gamma": 0.9}, {"layers": [256, 1]}, {"kwargs": {"a": None}}, {"name": "Y"}]
)
def test_fingerprint_depends_on_every_key(change: dict[str, Any]) -> None:
    assert fingerprint(config_with(**change)) != fingerprint(config_with())


def test_fingerprint_stays_the_same_from_one_release_to_the_next() -> None:
    """Resuming a run compares fingerprints, so they may change only together with the keys."""

    @dataclasses.dataclass(frozen=True)
    class Small:
        rate: float = setting(0.5, "A rate.")
        layers: list[int] = setting([1, 2], "Units.")

    # echo -n '{"layers":[1,2],"rate":0.5}' | sha256sum
    assert fingerprint(Small()) == "93e6642e47e4bf95"  # type: ignore[arg-type]


def test_differences() -> None:
    here = dataclasses.replace(config_with({"a": 1, "c": True}, layers=[1]), seed=3)
    there = config_with({"a": "1", "b": [2], "c": True}, gamma=0.5)
    assert differences(canonical(here), canonical(there)) == [
        "agent.gamma: 0.99 here, 0.5 there",
        "agent.layers: [1] here, [256] there",
        'environment.kwargs.a: 1 here, "1" there',
        "seed: 3 here, 0 there",
        "environment.kwargs.b: absent here, [2] there",
    ]


def test_differences_of_different_agents() -> None:
    bare = Config(agent=AgentConfig("bare"))
    found = differences(canonical(bare), canonical(config_with(name="MinitaurBulletEnv-v0")))
    assert 'agent.name: "bare" here, "fake" there' in found
    assert "agent.layers: absent here, [256] there" in found


def test_long_values_differ_although_they_look_the_same() -> None:
    texts = ["x" * 300 + end for end in "ab"]
    assert len(differences(*(canonical(config_with({"a": text})) for text in texts))) == 1


def test_a_configuration_with_other_keys_is_refused(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(to_yaml(config_with()).replace("gamma:", "gamm:"))
    with pytest.raises(ConfigurationError, match=r"did you mean agent\.gamma"):
        load_with_sources(str(file), (), lambda name: FakeConfig)
