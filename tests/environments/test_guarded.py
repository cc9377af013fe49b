"""Faults of an environment: caught, counted, and survived up to a limit."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dm_env import specs
from tf_agents.environments import py_environment
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.environment import Step
from actorlearner.environments.guarded import GuardedEnvironment, load_guarded
from actorlearner.errors import RunError

OBSERVATION = {"state": np.zeros(2, np.float32), "pixel": np.zeros((2, 2), np.uint8)}
ACTION = np.zeros(1, np.float32)
GOOD = Step(OBSERVATION, 1.0, 1.0, last=False)
NAN_OBSERVATION = OBSERVATION | {"state": np.array([0.0, np.nan], np.float32)}


class Scripted:
    """Returns the scripted answers in turn; an answer that is an exception is raised."""

    observation_spec = specs.Array([2], np.float32)
    action_spec = specs.Array([1], np.float32)

    def __init__(self, steps: list[Any], resets: list[Any]) -> None:
        self._steps = list(steps)
        self._resets = list(resets)
        self.closed = False

    def reset(self) -> Any:
        return _answer(self._resets.pop(0)) if self._resets else OBSERVATION

    def step(self, action: Any) -> Any:
        return _answer(self._steps.pop(0)) if self._steps else GOOD

    def close(self) -> None:
        self.closed = True
        raise OSError("closing fails too")


def _answer(scripted: Any) -> Any:
    if isinstance(scripted, Exception):
        raise scripted
    return scripted


Guard = Callable[..., tuple[GuardedEnvironment, list[Scripted]]]


@pytest.fixture
def guard() -> Guard:
    def make(
        *scripts: dict[str, list[Any]], max_faults: int = 3, forgiven_after: int | None = None
    ) -> tuple[GuardedEnvironment, list[Scripted]]:
        made: list[Scripted] = []

        def environment(attempt: int) -> Any:
            assert attempt == len(made)
            script = scripts[attempt] if attempt < len(scripts) else {}
            if "make" in script:
                made.append(Scripted([], []))
                raise script["make"][0]
            made.append(Scripted(script.get("steps", []), script.get("resets", [])))
            return made[-1]

        return GuardedEnvironment(environment, "environment 7", max_faults, forgiven_after), made

    return make


FAULTS = {
    "raises": (RuntimeError("physics\nexploded"), "step raised RuntimeError: physics exploded"),
    "NaN observed": (GOOD._replace(observation=NAN_OBSERVATION), "observation that is not finite"),
    "infinite reward": (GOOD._replace(reward=float("inf")), "the reward inf"),
    "huge reward": (GOOD._replace(reward=1e39), "the reward 1e+39, which is not finite in float32"),
    "huge loss": (GOOD._replace(reward=-1e39), "the reward -1e+39, which is not finite in float32"),
    "NaN reward": (GOOD._replace(reward=float("nan")), "the reward nan"),
    "NaN discount": (GOOD._replace(discount=float("nan")), "the discount nan"),
    "discount above 1": (GOOD._replace(discount=2.0), "the discount 2.0"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_logged_and_the_environment_is_recreated(
    guard: Guard, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer, message = FAULTS[fault]
    environment, made = guard({"steps": [GOOD, answer]})
    environment.reset()
    assert environment.step(ACTION) == GOOD
    with caplog.at_level(logging.WARNING):
        assert environment.step(ACTION) is None
    assert environment.faults == 1
    assert message in caplog.text
    assert "environment 7" in caplog.text
    assert made[0].closed
    assert environment.reset() is OBSERVATION
    assert environment.step(ACTION) == GOOD
    assert len(made) == 2


def test_the_log_has_the_traceback_of_the_first_exception(
    guard: Guard, caplog: pytest.LogCaptureFixture
) -> None:
    environment, _ = guard(*[{"steps": [RuntimeError("physics")]}] * 2)
    for _ in range(2):
        environment.reset()
        assert environment.step(ACTION) is None
    assert caplog.text.count("raise scripted") == 1


def test_an_action_that_is_not_finite_never_reaches_the_environment(guard: Guard) -> None:
    environment, made = guard({"steps": [AssertionError("stepped")]})
    environment.reset()
    assert environment.step(np.array([np.inf], np.float32)) is None
    assert made[0]._steps


def test_resets_are_tried_again(guard: Guard) -> None:
    environment, made = guard({"resets": [OSError("no display")]}, {"resets": [NAN_OBSERVATION]})
    assert environment.reset() is OBSERVATION
    assert environment.faults == 2
    assert len(made) == 3


def test_a_failed_recreation_counts_as_a_fault_and_is_retried(guard: Guard) -> None:
    environment, made = guard({"steps": [OSError("crash")]}, {"make": [OSError("no licence")]})
    environment.reset()
    assert environment.step(ACTION) is None
    assert environment.faults == 2
    assert environment.reset() is OBSERVATION
    assert len(made) == 3


def test_more_than_max_faults_in_a_row_raise_run_error(guard: Guard) -> None:
    environment, _ = guard(*[{"resets": [OSError("no display")]}] * 4)
    with pytest.raises(RunError, match=r"environment 7 failed 4 times in a row .*max_faults: 3.*no display"):
        environment.reset()


@pytest.mark.parametrize("last", [True, False])
def test_an_episode_that_ends_or_is_cut_off_resets_the_count_of_faults_in_a_row(
    guard: Guard, last: bool
) -> None:
    script = {"steps": [GOOD, GOOD._replace(last=last), OSError("crash")]}
    environment, _ = guard(*[script] * 5, max_faults=1)
    for _ in range(5):
        environment.reset()
        assert environment.step(ACTION)
        assert environment.step(ACTION)
        environment.reset()
        assert environment.step(ACTION) is None
    assert environment.faults == 5


def test_many_env_steps_reset_the_count_of_faults_in_a_row(guard: Guard) -> None:
    environment, _ = guard(*[{"steps": [GOOD] * 8 + [OSError("crash")]}] * 5, max_faults=1, forgiven_after=8)
    for _ in range(5):
        environment.reset()
        while environment.step(ACTION) is not None:
            pass
    assert environment.faults == 5


def test_an_environment_that_completes_no_episode_fails_however_late(guard: Guard) -> None:
    """An evaluation would play its episode again and again."""
    environment, _ = guard(*[{"steps": [GOOD] * 1_500 + [OSError("crash")]}] * 2, max_faults=1)
    environment.reset()
    while environment.step(ACTION) is not None:
        pass
    environment.reset()
    for _ in range(1_500):
        assert environment.step(ACTION)
    with pytest.raises(RunError, match="failed 2 times in a row"):
        environment.step(ACTION)


def test_a_recreated_environment_has_another_seed() -> None:
    config = EnvironmentConfig(suite="gym", name="Pendulum-v1")
    first, second = (load_guarded(config, 3, "collect-actor", 0, 1) for _ in range(2))
    np.testing.assert_array_equal(first.reset(), second.reset())
    assert first.step(np.array([np.nan], np.float32)) is None
    assert not np.array_equal(first.reset(), second.reset())
    first.close()
    second.close()


class Unseeded(py_environment.PyEnvironment):
    def observation_spec(self):
        return array_spec.ArraySpec((1,), np.float32)

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 0, 1)

    def _reset(self):
        return time_step.restart(np.zeros(1, np.float32))

    def _step(self, action):
        return time_step.transition(np.zeros(1, np.float32), reward=0.0)


def test_the_warning_about_a_missing_seed_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    config = EnvironmentConfig(suite=f"{__name__}:Unseeded", name="")
    for environment in range(3):
        load_guarded(config, 0, "collect-actor", 0, environment)
    load_guarded(config, 0, "collect-actor", 0, 0, restart=1)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f'"{__name__}:Unseeded" takes no seed: its episodes differ from run to run, whatever the key seed is'
    ]


def test_an_exception_in_close_is_ignored(guard: Guard) -> None:
    environment, (scripted,) = guard({})
    environment.close()
    assert scripted.closed


def test_an_environment_may_reject_an_action(guard: Guard) -> None:
    """Google's simulator of buildings does so with a reward of -inf."""
    environment, made = guard({"steps": [GOOD._replace(reward=float("-inf"), last=True), GOOD]})
    assert environment.step(ACTION) == GOOD._replace(reward=0.0, last=True, rejected=True)
    assert environment.step(ACTION) == GOOD
    assert environment.faults == 0
    assert len(made) == 1
