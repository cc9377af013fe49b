"""Loading a configuration: all mistakes are reported together."""

import pathlib
from collections.abc import Collection

import pytest

from actorlearner.config.schema import Config
from actorlearner.errors import ConfigurationError
from tests.support.fake_agent import load_config

# The file.


def test_unreadable_text(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"seed: \xe9\n")
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        load_config(str(file))


def test_unreadable_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: pathlib.Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied")

    file = tmp_path / "secret.yaml"
    file.touch()
    monkeypatch.setattr(pathlib.Path, "open", refuse)
    with pytest.raises(ConfigurationError, match="cannot be read: Permission denied"):
        load_config(str(file))


def _bomb(nest: str) -> str:
    """A small document whose YAML aliases expand to a hundred million values."""
    lines = ["k0: &k0 {x: 1}"]
    for level in range(1, 9):
        lines.append(f"k{level}: &k{level} " + nest.format(", ".join([f"*k{level - 1}"] * 10)))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agent: {name: fake\nseed: 1\n", "exp.yaml:2:5: broken YAML"),
        ("agent:\n  name: fake\n bad\n", "exp.yaml:3:2: broken YAML"),
        ("agent: !!python/object:os.system {}\n", "exp.yaml:1:8: broken YAML"),
        ("agent: &a [*a]\n", "exp.yaml: broken YAML: nested more than 20 levels deep"),
        (
            "agent: {name: fake}\nseed: !!int twelve\n",
            'exp.yaml:2:7: broken YAML: "twelve" cannot be read as int',
        ),
        ("seed: !!bool twelve\n", 'exp.yaml:1:7: broken YAML: "twelve" cannot be read as bool'),
        ("seed: !!int ''\n", 'exp.yaml:1:7: broken YAML: "" cannot be read as int'),
        ("seed: !!timestamp today\n", 'exp.yaml:1:7: broken YAML: "today" cannot be read as timestamp'),
        ("seed: 0x" + "f" * 5000 + "\n", 'exp.yaml:1:7: broken YAML: "0xffff'),
        ("agent: {name: fake}\n---\nseed: 1\n", "exp.yaml:2:1: broken YAML"),
        ("agent: \0\n", "exp.yaml: broken YAML: special characters are not allowed"),
        ("agent: " + "[" * 5000, "exp.yaml: broken YAML: nested more than 20 levels deep"),
        ("agent: " + "[" * 20 + "]" * 20, "exp.yaml: broken YAML: nested more than 20 levels deep"),
        (_bomb("[{}]"), "exp.yaml: broken YAML: more than 10000 values, aliases written out"),
        (_bomb("{{<<: [{}]}}"), "exp.yaml: broken YAML: more than 10000 values, aliases written out"),
        (f"seed: [{'1, ' * 10_000}]", "exp.yaml: broken YAML: more than 10000 values, aliases written out"),
        (f"seed: {'1' * 65_536}", "exp.yaml: is larger than 65536 bytes; allowed: a YAML file"),
    ],
    ids=lambda text: text[:60],
)
def test_broken_yaml(problems_of, text: str, expected: str) -> None:
    (problem,) = problems_of(text)
    assert problem.startswith(expected)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "is empty"),
        ("# a comment\n", "is empty"),
        ("- seed\n", "is a list, not a mapping"),
        ("seed\n", "is a single value, not a mapping"),
        ("!!set {seed}\n", "is a set, not a mapping"),
    ],
)
def test_file_without_sections(tmp_path: pathlib.Path, text: str, wrong: str) -> None:
    file = tmp_path / "exp.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as error:
        load_config(str(file))
    assert len(error.value.problems) == 1
    assert wrong in error.value.problems[0]


def test_duplicate_keys(problems_of) -> None:
    text = "learn:\n  batch_size: 1\n  batch_size: 2\nseed: 1\nenvironment: {kwargs: {a: 1, a: 2}}\nseed: 2\n"
    assert problems_of(text) == (
        "seed: given twice, first in line 4 (exp.yaml:6); allowed: once",
        "learn.batch_size: given twice, first in line 2 (exp.yaml:3); allowed: once",
        "environment.kwargs.a: given twice, first in line 5 (exp.yaml:5); allowed: once",
    )


def test_two_merges(problems_of) -> None:
    text = "collect: &a {actors: 1}\nlearn:\n  <<: *a\n  <<: *a\n"
    assert "learn.<<: given twice, first in line 3 (exp.yaml:4); allowed: once" in problems_of(text)


@pytest.mark.parametrize("value", ["3", "null", "[1]", "text"])
def test_section_must_be_a_mapping(problems_of, value: str) -> None:
    (problem,) = problems_of(f"learn: {value}\n")
    assert "is not a mapping (exp.yaml:1); allowed: a mapping with any of train_steps" in problem


# Keys.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("learn:\n  batch_szie: 3\n", "learn.batch_szie: unknown key with value 3 (exp.yaml:2); did you mean "
         "learn.batch_size? allowed: train_steps, batch_size"),
        ("lern: {}\n", "lern: unknown key with value {} (exp.yaml:1); did you mean learn? allowed: "),
        ("learn: {gamma: 1}\n", "learn.gamma: unknown key with value 1 (exp.yaml:1); did you mean agent."),
        ("zzz: 1\n", "zzz: unknown key with value 1 (exp.yaml:1); allowed: environment, agent"),
        ("learn.batch_size: 3\n", "learn.batch_size: written with a dot (exp.yaml:1); allowed: batch_size"),
        ("1: 2\n", "1: unknown key with value 2 (exp.yaml:1)"),
        ("? [a]\n: 2\n", "exp.yaml:1:3: broken YAML: found unhashable key"),
    ],
)  # fmt: skip
def test_unknown_key(problems_of, text: str, expected: str) -> None:
    (problem,) = problems_of(text)
    assert problem.startswith(expected)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("lern.batch_size=1", "lern.batch_size: unknown key with value 1 (--set); did you mean learn."),
        ("agent.gama=1", "agent.gama: unknown key with value 1 (--set); did you mean agent.gamma?"),
        ("learn.interval=1", "learn.interval: unknown key with value 1 (--set); did you mean learn.pub"),
        ("learn.batch_size.x=1", "learn.batch_size.x: unknown key (--set); allowed: learn.batch_size itself"),
        ("learn=3", "learn: 3 given for a whole section (--set); allowed: a mapping with any of train_steps"),
        ("learn={batch_size: 3}", 'learn: {"batch_size": 3} given for a whole section (--set)'),
        ("seed", '"seed": malformed (--set); allowed: section.key=value'),
        ("=3", '"=3": malformed (--set)'),
        ("", '"": malformed (--set)'),
        ("learn..batch_size=3", '"learn..batch_size=3": malformed (--set)'),
        ("seed=[1,", 'seed: "[1," is broken YAML'),
        ("environment.kwargs={a: 1, a: 2}", "environment.kwargs: \"{a: 1, a: 2}\" is broken YAML: key a"),
        ("seed=\x07", 'seed: "\\u0007" is broken YAML: special characters are not allowed'),
        ("seed=3\n---\n4", "seed: \"3\\n---\\n4\" is broken YAML"),
        ("seed=!!int ''", "seed: \"!!int ''\" is broken YAML: \"\" cannot be read as int (--set)"),
        ("seed=0x" + "f" * 5000, 'seed: "0xfff'),
        ("seed=" + "1" * 70_000, 'seed: "1111'),
        ("seed=" + "[" * 21 + "]" * 21, 'seed: "[[[[[[[[[['),
        ("environment.kwargs" + ".a" * 19 + "=1", '"environment.kwargs.a'),
    ],
)  # fmt: skip
def test_bad_override(problems_of, override: str, expected: str) -> None:
    (problem,) = problems_of("", override)
    assert problem.startswith(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed: 1\n", "agent.name: is not given (exp.yaml); allowed: fake, other"),
        ("agent: {name: fak}\n", 'agent.name: unknown agent "fak" (exp.yaml:1); did you mean fake? all'),
        ("agent: {name: fak, nonsense: 3}\n", 'agent.name: unknown agent "fak" (exp.yaml:1)'),
        ("agent: {name: '${seed}'}\n", 'agent.name: unknown agent "${seed}" (exp.yaml:1)'),
        ("agent: {name: 3}\n", "agent.name: 3 is of the wrong type (exp.yaml:1); allowed: fake, other"),
        ("agent: {name: [fake]}\n", 'agent.name: ["fake"] is of the wrong type (exp.yaml:1); allowed: fake'),
        ("agent: fake\n", 'agent: "fake" is not a mapping (exp.yaml:1); allowed: a mapping with any of name'),
    ],
)  # fmt: skip
def test_unknown_agent(tmp_path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str) -> None:
    monkeypatch.chdir(tmp_path)
    pathlib.Path("exp.yaml").write_text(text)
    with pytest.raises(ConfigurationError) as error:
        load_config("exp.yaml")
    (problem,) = error.value.problems
    assert problem.startswith(expected)


# Values.

GOOD_VALUES = {
    "learn.batch_size": ["1"],
    "agent.gamma": [".5", "1"],
    "agent.layers": [],
    "agent.debug": ["true"],
    "agent.loss": [],
    "environment.kwargs": ["{a: 1}"],
    "agent.clipping": [".5", "1", "null"],
    "replay.error_buffer": [".5", "1", "null"],
}


@pytest.mark.parametrize("key", GOOD_VALUES)
@pytest.mark.parametrize("value", ["true", "'256'", "null", "[1.5]", "{a: 1}", "text", ".5", "1", "[[1]]"])
def test_wrong_types(load_text, key: str, value: str) -> None:
    section, _, name = key.partition(".")
    text = (
        f"agent: {{name: fake, {name}: {value}}}" if section == "agent" else f"{section}: {{{name}: {value}}}"
    )
    if value in GOOD_VALUES[key]:
        load_text(text)
        return
    with pytest.raises(ConfigurationError) as from_file:
        load_text(text)
    with pytest.raises(ConfigurationError) as from_flag:
        load_text("", f"{key}={value}")
    for error, source in ((from_file, "exp.yaml:1"), (from_flag, "--set")):
        (problem,) = error.value.problems
        assert problem.startswith(f"{key}: ")
        assert f"({source}); allowed: " in problem
        assert "wrong type" in problem or "out of range" in problem


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("learn.batch_size=true", "learn.batch_size: true is of the wrong type (--set); allowed: integer"),
        ("learn.batch_size='256'", 'learn.batch_size: "256" is of the wrong type'),
        ("learn.batch_size=1.5", "learn.batch_size: 1.5 is of the wrong type"),
        ("learn.batch_size=1e6", "learn.batch_size: 1000000.0 is not written as an integer"),
        ("learn.batch_size=-256", "learn.batch_size: -256 is out of range (--set); allowed: integer, at"),
        (f"seed={2**63}", f"seed: {2**63} is out of range: it needs more than 64 bits"),
        ("seed=" + "9" * 5000, "seed: \"99999999"),
        ("agent.gamma=.nan", "agent.gamma: NaN is not finite (--set); allowed: number, at least 0 and at"),
        ("agent.gamma=.inf", "agent.gamma: Infinity is not finite"),
        ("replay.updates_per_env_step=1e308", "replay.updates_per_env_step: 1e+308 is out of range"),
        ("replay.updates_per_env_step=1e-320", "replay.updates_per_env_step: 1e-320 is out of range"),
        ("replay.error_buffer=1e308", "replay.error_buffer: 1e+308 is out of range"),
        ("collect.variables_interval_s=1e308", "collect.variables_interval_s: 1e+308 is out of range"),
        ("collect.actors=1000000000", "collect.actors: 1000000000 is out of range"),
        ("collect.envs_per_actor=1000000000", "collect.envs_per_actor: 1000000000 is out of range"),
        ("collect.threads=4294967296", "collect.threads: 4294967296 is out of range"),
        ("learn.intra_op_threads=4294967296", "learn.intra_op_threads: 4294967296 is out of range"),
        ("agent.rates=[1, .inf]", "agent.rates: [1, Infinity] is not finite"),
        ("agent.gamma=1.01", "agent.gamma: 1.01 is out of range"),
        ("agent.layers=[4, 0]", "agent.layers: [4, 0] is out of range (--set); allowed: list of integer"),
        ("agent.layers=[4, true]", "agent.layers: [4, true] is of the wrong type"),
        ("agent.layers=4", "agent.layers: 4 is of the wrong type"),
        ("agent.loss=hubert", 'agent.loss: "hubert" is out of range (--set); allowed: text, one of huber,'),
        ("agent.clipping=0", "agent.clipping: 0 is out of range (--set); allowed: number or null, above 0"),
        ("environment.kwargs={1: 2}", 'environment.kwargs: {"1": 2} has a name that is not text'),
        ("environment.kwargs={a: [.nan]}", 'environment.kwargs: {"a": [NaN]} is not a number'),
        ("environment.kwargs={a: !!set {b}}", "environment.kwargs: {"),
        ("environment.kwargs.a=!!binary aGk=", "environment.kwargs: {"),
        ('environment.name="\\ud800"', 'environment.name: "\ud800" has a character that is not Uni'),
        ('environment.kwargs={a: ["\\udfff"]}', 'environment.kwargs: {"a": ["\udfff"]} has a character that'),
        ('environment.kwargs={"\\udfff": 1}', 'environment.kwargs: {"\udfff": 1} has a character that'),
    ],
)  # fmt: skip
def test_refused_values(problems_of, override: str, expected: str) -> None:
    (problem,) = problems_of("", override)
    assert problem.startswith(expected)


def test_only_the_overriding_value_is_checked(load_text) -> None:
    assert load_text("learn: {batch_size: -1}", "learn.batch_size=3").learn.batch_size == 3


def test_everything_is_reported_at_once(problems_of) -> None:
    problems = problems_of(
        "learn:\n  batch_size: -1\n  batch_szie: 1\n  strategy: mirrored:3\nseed: x\nseed: y\n",
        "callbacks=[nowhere]",
        "nonsense",
        "environment.suite=pybulet",
    )
    keys = [problem.partition(":")[0] for problem in problems]
    # A batch size that is refused is not also compared with the replicas of the strategy.
    assert sorted(keys) == sorted(
        [
            "seed",
            '"nonsense"',
            "learn.batch_szie",
            "learn.batch_size",
            "seed",
            "callbacks",
            "environment.suite",
        ]
    )


# Further checks.


def test_a_further_check_joins_the_other_problems(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: Config, broken: Collection[str]) -> list[str]:
        assert broken == {"seed"}
        return [f"environment.name: no {config.environment.name}"]

    monkeypatch.chdir(tmp_path)
    pathlib.Path("exp.yaml").write_text("agent: {name: fake}\nenvironment:\n  name: X\n")
    with pytest.raises(ConfigurationError) as error:
        load_config("exp.yaml", ["seed=-1"], [refuse])
    assert error.value.problems[1:] == ("environment.name: no X (exp.yaml:3)",)
    assert load_config("exp.yaml", [], [lambda config, broken: []]).environment.name == "X"


def test_problems_found_by_checks_name_the_source_of_the_key(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "agent: {name: fake}\nenvironment: {suite: gymm}\ncollect:\n  actor_kwargs: {port: 1}\n"
    pathlib.Path("exp.yaml").write_text(text)
    with pytest.raises(ConfigurationError) as error:
        load_config("exp.yaml", ["learn.strategy=mirrored:3", "callbacks=[x]"])
    assert [line.partition(" allowed: ")[0] for line in error.value.problems] == [
        'environment.suite: unknown suite "gymm" (exp.yaml:2); did you mean gym?',
        "learn.batch_size: 256 cannot work (default);",
        "collect.actor_kwargs.port: 1 cannot work (exp.yaml:4);",
        'callbacks: "x" cannot work (--set);',
    ]
