"""Search spaces: valid files, sampled values, and refusals."""

from collections.abc import Sequence
from pathlib import Path

import optuna
import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.errors import ConfigurationError
from actorlearner.sweep.space import Parameter, read_space

_SPACE = """
agent.actor_learning_rate, agent.critic_learning_rate: {low: 1.0e-5, high: 1.0e-2, log: true}
agent.actor_layers: [[16], [32, 32]]
learn.batch_size: {low: 64, high: 256}
agent.gamma: {low: 0.9, high: 0.999}
"""


def _read(tmp_path: Path, text: str) -> tuple[Parameter, ...]:
    file = tmp_path / "space.yaml"
    file.write_text(text)

    def check(overrides: Sequence[str]) -> None:
        load_config("td3_pendulum", overrides)

    return read_space(str(file), check)


def _problems(tmp_path: Path, text: str) -> Sequence[str]:
    with pytest.raises(ConfigurationError) as refused:
        _read(tmp_path, text)
    return refused.value.problems


def test_what_is_drawn_is_in_the_space_and_loads(tmp_path: Path) -> None:
    space = _read(tmp_path, _SPACE)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    layers, rates = set(), []
    for _ in range(20):
        trial = study.ask()
        overrides = [override for each in space for override in each.overrides(each.suggest(trial))]
        config = load_config("td3_pendulum", overrides)
        agent = config.agent
        assert agent.actor_learning_rate == agent.critic_learning_rate  # type: ignore[attr-defined]
        rates.append(agent.actor_learning_rate)  # type: ignore[attr-defined]
        layers.add(tuple(agent.actor_layers))  # type: ignore[attr-defined]
        assert 64 <= config.learn.batch_size <= 256
        assert 0.9 <= agent.gamma <= 0.999
    assert layers == {(16,), (32, 32)}
    assert 1e-5 <= min(rates) < 1e-4 < 1e-3 < max(rates) <= 1e-2  # Evenly in its logarithm.


def test_every_problem_is_a_line_with_its_place(tmp_path: Path) -> None:
    problems = _problems(tmp_path, "agent.gama: [1]\nagent.gamma: {low: 0.5, high: 2}\nlearn.batch_size: 3\n")
    assert [problem.partition("; ")[0] for problem in problems] == [
        f"learn.batch_size: 3 is no range of values to search ({tmp_path}/space.yaml:3)",
        f"agent.gama: unknown key with value 1 ({tmp_path}/space.yaml:1)",
        f"agent.gamma: 2 is out of range ({tmp_path}/space.yaml:2)",
    ]


@pytest.mark.parametrize(
    "values",
    [
        "[]",
        "{low: 1}",
        "{low: 2, high: 1}",
        "{low: 0, high: 1, log: true}",
        "{low: 0, high: x}",
        "{low: 0, high: 1, log: 1}",
        "{low: false, high: true}",
        "{low: 0, high: 1, step: 0.1}",
    ],
)
def test_invalid_ranges_are_refused(tmp_path: Path, values: str) -> None:
    (problem,) = _problems(tmp_path, f"agent.gamma: {values}")
    assert "is no range of values to search" in problem
    assert "allowed: a list of values, or a mapping with low, high" in problem


def test_a_range_of_an_integer_needs_integers(tmp_path: Path) -> None:
    """Both ends of 1.0e+2 to 1.0e+4 are integers; of the values between them, hardly any is."""
    (problem,) = _problems(tmp_path, "learn.batch_size: {low: 1.0e+2, high: 1.0e+4, log: true}")
    assert "is of the wrong type" in problem
    assert "allowed: integer" in problem


@pytest.mark.parametrize("keys", ["seed", "agent.gamma, seed"])
def test_the_seed_is_not_searched(tmp_path: Path, keys: str) -> None:
    assert _problems(tmp_path, f"{keys}: [0, 1]") == (
        f"{keys}: [0, 1] cannot be searched ({tmp_path}/space.yaml:1); "
        "allowed: --seeds N for N runs in each trial",
    )


def test_a_space_without_a_key_is_refused(tmp_path: Path) -> None:
    (problem,) = _problems(tmp_path, "{}")
    assert problem.startswith(f"{tmp_path}/space.yaml: has no key to search; allowed: a mapping of keys to ")


def test_a_key_that_is_searched_twice_is_refused(tmp_path: Path) -> None:
    problems = _problems(tmp_path, "agent.gamma: [0.9]\nagent.actor_learning_rate, agent.gamma: [0.5]\n")
    assert [problem.partition("; ")[0] for problem in problems] == [
        f"agent.gamma: is searched twice ({tmp_path}/space.yaml:{line})" for line in (1, 2)
    ]


@pytest.mark.parametrize("path", ["absent.yaml", "td3_pendulum", ""])
def test_a_file_that_is_not_there(path: str) -> None:
    """The shipped configurations are no search spaces."""
    with pytest.raises(ConfigurationError, match=r"cannot be read: .* \(--space\); allowed: a YAML file"):
        read_space(path, lambda overrides: None)
