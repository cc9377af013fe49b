"""Looking environments up before anything starts."""

import dataclasses
import pathlib
import subprocess
import sys

import pytest

from actorlearner.config.schema import CollectConfig, Config, EnvironmentConfig, EvaluateConfig
from actorlearner.environments.checks import check_environment, environment_problems
from actorlearner.errors import ConfigurationError


def problem_of(suite: str, name: str = "") -> str:
    with pytest.raises(ConfigurationError) as error:
        check_environment(EnvironmentConfig(suite=suite, name=name))
    (problem,) = error.value.problems
    assert len(problem.splitlines()) == 1
    return problem


@pytest.fixture
def module(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    """Writes the module `my_environments`."""

    def write(text: str) -> None:
        (tmp_path / "my_environments.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))

    monkeypatch.delitem(sys.modules, "my_environments", raising=False)
    yield write
    sys.modules.pop("my_environments", None)


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("pybullet", "MinitaurBulletEnv-v0"),
        ("pybullet", "HalfCheetahBulletEnv-v0"),
        ("pybullet", "Pendulum-v1"),
        ("gym", "Pendulum-v1"),
        ("gym", "CartPole-v1"),
    ],
)
def test_known_environments(suite: str, name: str) -> None:
    check_environment(EnvironmentConfig(suite=suite, name=name))


def test_unknown_environment_names_the_closest() -> None:
    assert problem_of("gym", "Pendulum-v7") == (
        'environment.name: unknown environment "Pendulum-v7" in suite gym; '
        "did you mean Pendulum-v1 or InvertedPendulum-v2? allowed: a name that gym registers, or module:name"
    )
    problem = problem_of("pybullet", "HalfCheetaBulletEnv-v0")
    assert 'unknown environment "HalfCheetaBulletEnv-v0" in suite pybullet;' in problem
    assert "did you mean HalfCheetahBulletEnv-v0" in problem


@pytest.mark.parametrize("name", ["pendulum-v1", "Pendulum", "no such thing", "a/b/c", "Pendulum-v0"])
def test_unknown_names(name: str) -> None:
    assert problem_of("gym", name).startswith(f'environment.name: unknown environment "{name}" in suite gym')


@pytest.mark.parametrize("suite", ["gym", "gymnasium"])
def test_a_name_may_begin_with_the_module_that_registers_it(suite: str, module) -> None:
    module(
        f"import {suite}\n"
        f"{suite}.register(id='{suite}/Own-v0', entry_point='my_environments:make')\n"
        f"def make(size=1): ...\n"
    )
    check_environment(EnvironmentConfig(suite, f"my_environments:{suite}/Own-v0", {"size": 2}))
    mistyped = problem_of(suite, f"my_environments:{suite}/Onw-v0")
    assert f"did you mean my_environments:{suite}/Own-v0? allowed: a name that {suite} registers" in mistyped
    assert problem_of(suite, "no_module:Own-v0").startswith(
        'environment.name: "no_module:Own-v0" cannot be loaded: ModuleNotFoundError'
    )


def test_environment_whose_library_is_missing() -> None:
    """Registered by gym, but defined in a module that needs a package of its own."""
    problem = problem_of("gym", "Ant-v3")
    assert problem.startswith('environment.name: "Ant-v3" cannot be loaded: DependencyNotInstalled: ')


def test_suite_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pybullet_envs", None)
    problem = problem_of("pybullet", "MinitaurBulletEnv-v0")
    assert problem.startswith('environment.suite: "pybullet" cannot be loaded: ModuleNotFoundError: ')


def test_custom_environment(module, capfd: pytest.CaptureFixture[str]) -> None:
    module("print('loud')\ndef make(name): raise AssertionError('it must not be made yet')\n")
    check_environment(EnvironmentConfig(suite="my_environments:make", name="whatever"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def make_it(): ...\n", "make does not exist in my_environments; did you mean make_it?"),
        ("make = 3\n", "make is not callable in my_environments"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise ValueError('first\\nsecond')\n", "ValueError: first second at "),
        ("raise KeyError\n", "KeyError at "),
        ("\nimport json\njson.loads('x')\n", "/my_environments.py:3;"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("def make(:\n", "SyntaxError: "),
        ("raise type('Odd', (BaseException,), {})('x')\n", "Odd: x at "),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})\n", "Mute at "),
        ("def __getattr__(name): raise RuntimeError(name)\n", "RuntimeError: make at "),
        ("import sys; sys.modules[__name__] = 3\n", "make does not exist in my_environments;"),
        ("globals()[''] = print\n", "make does not exist in my_environments;"),
    ],
)
def test_broken_custom_environment(module, text: str, expected: str) -> None:
    module(text)
    problem = problem_of("my_environments:make")
    assert problem.startswith('environment.suite: "my_environments:make" cannot be loaded: ')
    assert expected in problem


@pytest.mark.parametrize(
    ("suite", "name", "kwargs", "expected"),
    [
        ("gym", "CartPole-v1", {"x": 1}, 'environment.kwargs: {"x": 1} cannot be passed to CartPole-v1: got'),
        ("gym", "Pendulum-v1", {"G": 1}, "argument 'G'; did you mean g? allowed: any of g"),
        ("pybullet", "MinitaurBulletEnv-v0", {"x": 1}, "unexpected keyword argument 'x'; allow"),
        ("my_environments:make", "A", {"sped": 1}, "; did you mean speed? allowed: any of speed, mode"),
        ("my_environments:make", "A", {"name": 1}, "multiple values for argument 'name'; all"),
        ("my_environments:bare", "A", {}, 'environment.name: "A" cannot be passed to my_environments:bare: '),
        ("my_environments:bare", "A", {}, "; allowed: empty (environment.name=), or a callable that takes a"),
        ("my_environments:bare", "", {"a": 1}, "keyword argument 'a'; allowed: nothing"),
    ],
)
def test_wrong_arguments(module, suite: str, name: str, kwargs: dict[str, object], expected: str) -> None:
    module("def make(name, speed=1, *, mode=2): ...\ndef bare(): ...\n")
    with pytest.raises(ConfigurationError) as error:
        check_environment(EnvironmentConfig(suite, name, kwargs))
    (problem,) = error.value.problems
    assert expected in problem


@pytest.mark.parametrize(
    ("suite", "name", "kwargs"),
    [
        ("gym", "Pendulum-v1", {"g": 9.81}),
        ("pybullet", "MinitaurBulletEnv-v0", {"action_repeat": 2}),
        ("my_environments:make", "A", {"speed": 3}),
        ("my_environments:make", "", {}),  # A decorator may add the missing arguments, as gin's does.
        ("my_environments:anything", "A", {"whatever": 3}),
        ("builtins:range", "", {"whatever": 3}),  # It has no signature.
    ],
)
def test_arguments_that_may_work(module, suite: str, name: str, kwargs: dict[str, object]) -> None:
    module("def make(name, speed): ...\ndef anything(*args, **kwargs): ...\n")
    check_environment(EnvironmentConfig(suite, name, kwargs))


def test_custom_module_that_does_not_exist() -> None:
    problem = problem_of("no_such_module.at_all:make")
    assert "ModuleNotFoundError: No module named 'no_such_module';" in problem
    assert problem.endswith(
        "; allowed: a module that Python finds: start this in the folder that has no_such_module, or put "
        "that folder into PYTHONPATH"
    )


def test_a_module_that_is_found_is_not_looked_for_elsewhere(module) -> None:
    module("import no_such_module_either")
    problem = problem_of("my_environments:make")
    assert problem.endswith("allowed: an environment whose module my_environments can be imported")


def test_silence_and_no_tensorflow() -> None:
    """In a fresh process, where everything is imported for the first time."""
    code = (
        "import sys\n"
        "from actorlearner.config.schema import EnvironmentConfig\n"
        "from actorlearner.environments.checks import check_environment\n"
        "for suite, name in (('pybullet', 'MinitaurBulletEnv-v0'), ('gym', 'Pendulum-v1')):\n"
        "    check_environment(EnvironmentConfig(suite=suite, name=name))\n"
        "sys.exit(any(name in sys.modules for name in ('tensorflow', 'tf_agents', 'reverb')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("suite", "name", "broken"),
    [("nonsense", "X", ()), ("gym", "", ()), ("gym", "X", ("environment.kwargs",))],
)
def test_an_environment_section_that_is_refused_already_is_not_looked_up(suite, name, broken) -> None:
    config = Config(environment=EnvironmentConfig(suite=suite, name=name))
    assert list(environment_problems(config, broken)) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (Config(evaluate=EvaluateConfig(kwargs={"G": 2})), 'evaluate.kwargs: {"g": 9.8, "G": 2} cannot be'),
        (Config(collect=CollectConfig(actor_kwargs={"G": [2]})), 'collect.actor_kwargs: {"g": 9.8, "G": 2} '),
    ],
)
def test_arguments_of_evaluations_and_actors_are_checked(config: Config, expected: str) -> None:
    environment = EnvironmentConfig("gym", "Pendulum-v1", {"g": 9.8})
    (line,) = environment_problems(dataclasses.replace(config, environment=environment))
    assert line.startswith(expected)
    assert line.endswith("argument 'G'; did you mean g? allowed: any of g")


def test_problems_of_an_environment_are_returned() -> None:
    config = Config(environment=EnvironmentConfig(suite="gym", name="Pendulum-v7"))
    (line,) = environment_problems(config)
    assert line.startswith('environment.name: unknown environment "Pendulum-v7" in suite gym; ')
