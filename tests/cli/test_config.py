"""The commands about configurations, as a user calls them."""

import sys
from pathlib import Path

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.cli import main as cli
from actorlearner.config.keys import config_keys
from actorlearner.config.shipped import shipped_configs


def test_every_shipped_configuration_is_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["configs"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(shipped_configs())
    expected = ["sac_halfcheetah", "SAC", "on", "pybullet's", "HalfCheetah."]
    assert expected in [line.split() for line in lines]


def test_a_key_is_explained(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "--explain", "evaluate.episodes"]) == 0
    assert capfd.readouterr().out == (
        "evaluate.episodes\n"
        "  Episodes of the greedy policy in one evaluation.\n"
        "  allowed: integer, at least 1\n"
        "  default: 20\n"
    )


def test_a_key_of_one_algorithm_says_which(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "--explain", "agent.dropped_quantiles"]) == 0
    assert capfd.readouterr().out.startswith("agent.dropped_quantiles (of tqc)\n")


def test_a_key_is_explained_with_its_value(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("exp.yaml").write_text("environment: {suite: gym, name: Pendulum-v1}\nagent: {name: sac}\n")
    given = ["--config", "exp.yaml", "--set", "seed=7"]
    assert cli.main(["config", "--explain", "seed", *given]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "  here:    7 (--set)"
    assert cli.main(["config", "--explain", "agent.name", *given]) == 0
    (line,) = [line for line in capfd.readouterr().out.splitlines() if "here" in line]
    assert line == '  here:    "sac" (exp.yaml:2)'


@pytest.mark.parametrize("name", shipped_configs())
def test_every_key_of_a_section_is_explained(capfd: pytest.CaptureFixture[str], name: str) -> None:
    sections = ("environment", "agent", "replay", "collect", "learn", "evaluate", "seed", "callbacks")
    explained = []
    for section in sections:
        assert cli.main(["config", "--explain", section, "--config", name]) == 0
        lines = capfd.readouterr().out.splitlines()
        # The source of a value may be a long path.
        assert max(len(line) for line in lines if not line.startswith("  here: ")) <= 80
        explained += [line for line in lines if line and not line.startswith(" ")]
    assert explained == list(config_keys(type(load_config(name).agent)))


def test_a_configuration_is_shown_with_its_sources(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "--config", "sac_pendulum", "--set", "learn.batch_size=64"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert any(line.split() == ["learn.batch_size:", "64", "#", "--set"] for line in lines)
    assert any(line.split() == ["learn.strategy:", '"default"', "#", "default"] for line in lines)
    (line,) = [line for line in lines if line.startswith("replay.capacity: 100000 ")]
    assert "sac_pendulum.yaml:" in line


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ([], "nothing is requested; allowed: --config FILE, --explain KEY, or both"),
        (["--set", "seed=1"], "--set: there is no configuration to change; allowed: with --config"),
        (
            ["--explain", "learn.batch"],
            "--explain: there is no key 'learn.batch'; did you mean learn.",
        ),
        (
            ["--explain", "x", "--config", "sac_pendulum"],
            "--explain: there is no key 'x'; allowed: a key, as",
        ),
        (["--config", "nowhere.yaml"], "nowhere.yaml: no such file (--config)"),
        (["--config", "sac_pendulum", "--set", "seed=-1"], "seed: -1 is out of range (--set)"),
    ],
)
def test_bad_usage(capfd: pytest.CaptureFixture[str], flags: list[str], problem: str) -> None:
    assert cli.main(["config", *flags]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"actorlearner: error: {problem}")


def test_nothing_imports_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # An import of it fails.
    assert cli.main(["config", "--explain", "agent", "--config", "sac_minitaur"]) == 0
