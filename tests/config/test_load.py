"""Loading a configuration: which file is read, and how its values and the overrides are merged."""

import dataclasses
import pathlib

import pytest

from actorlearner.config import shipped
from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from tests.support.fake_agent import FakeConfig, load_config


def test_defaults_are_those_of_the_schema(load_text) -> None:
    assert load_text("") == Config(agent=FakeConfig())


def test_file_and_overrides(load_text) -> None:
    config = load_text("learn:\n  batch_size: 64\n  train_steps: 7\n", "learn.batch_size=32", "seed=5")
    assert (config.learn.batch_size, config.learn.train_steps, config.seed) == (32, 7, 5)


def test_the_last_override_counts(load_text) -> None:
    assert load_text("", "seed=1", "seed=2").seed == 2


def test_result_is_frozen_dataclasses_and_plain_lists(load_text) -> None:
    config = load_text("agent:\n  name: fake\n  layers: [3, 4]\nenvironment: {kwargs: {a: {b: [1]}}}\n")
    assert type(config) is Config
    assert type(config.agent) is FakeConfig
    assert type(config.agent.layers) is list
    assert type(config.environment.kwargs["a"]) is dict
    assert type(config.environment.kwargs["a"]["b"]) is list
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.learn.batch_size = 3  # type: ignore[misc]


def test_agent_name_may_come_from_an_override(load_text) -> None:
    config = load_text("agent: {gamma: 0.5}\n", "agent.name=fake", "agent.layers=[1, 2]")
    assert config.agent == FakeConfig(gamma=0.5, layers=[1, 2])


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "0.001", ".001", "1.0e-3"])
def test_notations_of_a_float(load_text, text: str) -> None:
    assert load_text(f"agent: {{name: fake, clipping: {text}}}").agent.clipping == 0.001
    assert load_text("", f"agent.clipping={text}").agent.clipping == 0.001


def test_integer_becomes_float_where_a_float_is_declared(load_text) -> None:
    config = load_text("agent: {name: fake, gamma: 1, rates: [1, 2.5]}")
    assert type(config.agent.gamma) is float
    assert [type(rate) for rate in config.agent.rates] == [float, float]


def test_null_where_it_is_declared(load_text) -> None:
    assert load_text("replay: {updates_per_env_step: null}").replay.updates_per_env_step is None
    assert load_text("agent: {name: fake, clipping: 1}", "agent.clipping=null").agent.clipping is None
    assert load_text("agent: {name: fake, clipping: 1}", "agent.clipping=").agent.clipping is None


def test_an_override_without_a_value_is_empty_text(load_text) -> None:
    text = "environment: {suite: my_robots:make, name: A}"
    assert load_text(text, "environment.name=").environment.name == ""


def test_override_inside_a_mapping_keeps_its_other_entries(load_text) -> None:
    text = "environment:\n  kwargs: {render: true, size: {width: 3}}\n"
    config = load_text(text, "environment.kwargs.render=false", "environment.kwargs.size.height=4")
    assert config.environment.kwargs == {"render": False, "size": {"width": 3, "height": 4}}


def test_override_of_a_whole_mapping_replaces_it(load_text) -> None:
    text = "environment:\n  kwargs: {render: true}\n"
    assert load_text(text, "environment.kwargs={a: 1}").environment.kwargs == {"a": 1}
    assert load_text(text, "environment.kwargs={}").environment.kwargs == {}


def test_mapping_keeps_dots_dates_and_infinity(load_text) -> None:
    kwargs = load_text("environment: {kwargs: {a.b: .inf, day: 2020-01-01}}").environment.kwargs
    assert kwargs == {"a.b": float("inf"), "day": "2020-01-01"}


@pytest.mark.parametrize("text", ["${seed}", "${", "???"])
def test_nothing_is_interpolated(load_text, text: str) -> None:
    assert load_text(f"environment: {{name: '{text}', kwargs: {{a: '{text}'}}}}").environment.kwargs == {
        "a": text
    }
    assert load_text("", f"environment.name='{text}'").environment.name == text


def test_yaml_merge_and_alias(load_text) -> None:
    config = load_text("environment:\n  kwargs:\n    a: &a {x: 1, y: 2}\n    b: {<<: *a, y: 3}\n    c: *a\n")
    assert config.environment.kwargs["b"] == {"x": 1, "y": 3}
    assert config.environment.kwargs["c"] == {"x": 1, "y": 2}


def test_a_byte_order_mark_is_ignored(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "bom.yaml"
    file.write_bytes("agent: {name: fake}\n".encode("utf-8-sig"))
    assert load_config(str(file)).agent.name == "fake"


# Which file.


@pytest.fixture
def _shipped(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "configs").mkdir()
    for seed, name in enumerate(("sac_pendulum", "sac_minitaur")):
        (tmp_path / "configs" / f"{name}.yaml").write_text(f"agent: {{name: fake}}\nseed: {seed}\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path / "package")


@pytest.mark.usefixtures("_shipped")
@pytest.mark.parametrize("path", ["sac_minitaur", "sac_minitaur.yaml", "configs/sac_minitaur.yaml"])
def test_shipped_config_by_name(path: str) -> None:
    assert load_config(path).seed == 1


@pytest.mark.usefixtures("_shipped")
def test_existing_file_comes_before_a_shipped_one() -> None:
    pathlib.Path("sac_minitaur.yaml").write_text("agent: {name: fake}\nseed: 7\n")
    assert load_config("sac_minitaur.yaml").seed == 7


@pytest.mark.usefixtures("_shipped")
def test_shipped_configs_inside_an_installed_package(tmp_path: pathlib.Path) -> None:
    inside = tmp_path / "package" / "configs"
    inside.mkdir(parents=True)
    (inside / "only.yaml").write_text("agent: {name: fake}\n")
    assert list(shipped.shipped_configs()) == ["only"]


@pytest.mark.usefixtures("_shipped")
def test_missing_file_names_the_closest() -> None:
    with pytest.raises(ConfigurationError) as error:
        load_config("configs/sac_pendulm.yaml", ["learn.batch_size=0"])
    assert error.value.problems == (
        "configs/sac_pendulm.yaml: no such file (--config); did you mean sac_pendulum? "
        "allowed: a YAML file, or one of the shipped sac_minitaur, sac_pendulum",
        "learn.batch_size: 0 is out of range (--set); allowed: integer, at least 1",
    )


@pytest.mark.usefixtures("_shipped")
@pytest.mark.parametrize("path", ["", ".", "/"])
def test_directory_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError):
        load_config(path)


def test_the_default_name_depends_on_the_suite(load_text) -> None:
    text = "agent: {name: fake}\nenvironment: {suite: 'mine:make'}\n"
    assert load_text(text).environment.name == ""
    assert load_text(text, "environment.name=Robot").environment.name == "Robot"
    assert load_text(text, "environment.suite=pybullet").environment.name == "MinitaurBulletEnv-v0"
