"""Numbers of the environment's info as metrics of its episodes."""

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tf_agents.environments import py_environment
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step

from actorlearner.acting.recent_episodes import RecentEpisodes
from actorlearner.callbacks.callback import Episode
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.guarded import GuardedEnvironment
from actorlearner.environments.gym_adapter import GymAdapter
from actorlearner.environments.info import (
    EpisodeInfo,
    average_info,
    info_keys,
    info_of_episodes,
    named_numbers,
)
from actorlearner.environments.py_environment_adapter import PyEnvironmentAdapter
from tests.environments.test_gym_adapter import OBSERVATION, Scripted

METRICS = ("energy", "sum:energy", "mean:energy", "wires")


def test_metrics_need_each_key_once() -> None:
    assert info_keys(METRICS) == ("energy", "wires")
    assert info_keys(["max:x", "sum:"]) == ("max:x", "sum:")  # Names of their own.


def test_only_finite_numbers_count() -> None:
    info = {
        "int": 3,
        "bool": True,
        "float": np.float32(0.5),
        "one": np.array([7]),
        "text": "1.0",
        "nan": float("nan"),
        "none": None,
        "two": [1, 2],
        "ragged": [[1], [1, 2]],
        "other": 8,
    }
    keys = [*(key for key in info if key != "other"), "absent"]
    assert named_numbers(info, keys) == {"int": 3.0, "bool": 1.0, "float": 0.5, "one": 7.0}
    assert named_numbers(None, keys) == {}


def test_an_episode_has_the_last_value_the_sum_and_the_mean() -> None:
    episode = EpisodeInfo(METRICS)
    for info in ({"energy": 1.0}, {}, {"energy": 4.0, "wires": 9.0}):
        episode.add(info)
    assert episode.take() == {"energy": 4.0, "sum:energy": 5.0, "mean:energy": 2.5, "wires": 9.0}
    episode.add({"energy": 3.0, "wires": 1.0})
    assert episode.take()["sum:energy"] == 3.0


def test_a_metric_without_a_value_is_left_out_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    episode = EpisodeInfo(["heat", "mean:heat", "sum:noise"])
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            episode.add({"heat": 1.0})
            episode.add({})
            assert episode.take() == {"mean:heat": 1.0}
    assert caplog.messages == [
        "environment.info_metrics: 'heat' has no value for an episode: the info of the last env step has no "
        "number 'heat'",
        "environment.info_metrics: 'sum:noise' has no value for an episode: the info of any env step has no "
        "number 'noise'",
    ]


def test_averages_are_over_the_episodes_with_a_value() -> None:
    info = info_of_episodes(["a", "b"], [{"a": 1.0}, {}, {"a": 4.0}])
    assert info == {"a": [1.0, None, 4.0], "b": [None, None, None]}
    assert average_info(info) == {"a": 2.5, "b": None}


@pytest.mark.parametrize("flags", [(True,), (True, False)])
def test_steps_of_gym_have_the_named_numbers(flags: tuple[bool, ...]) -> None:
    answer = (OBSERVATION, 0.0, *flags, {"energy": 2, "name": "x", "wires": 5})
    step = GymAdapter(Scripted([answer]), ("energy", "name")).step(np.zeros(1))
    assert step.info == {"energy": 2.0}


class Informed(py_environment.PyEnvironment):
    """An environment whose info is the number of env steps so far."""

    def observation_spec(self) -> Any:
        return array_spec.ArraySpec((), np.float32)

    def action_spec(self) -> Any:
        return array_spec.BoundedArraySpec((), np.int32, 0, 1)

    def get_info(self) -> Any:
        return {"steps": self.steps}

    def _reset(self) -> Any:
        self.steps = 0
        return time_step.restart(np.float32(0))

    def _step(self, action: Any) -> Any:
        self.steps += 1
        return time_step.transition(np.float32(0), 0.0)


def test_steps_of_py_environments_have_the_named_numbers() -> None:
    adapter = PyEnvironmentAdapter(Informed(), ("steps",))
    adapter.reset()
    assert [adapter.step(np.int64(0)).info for _ in range(2)] == [{"steps": 1.0}, {"steps": 2.0}]


def test_an_actor_averages_over_its_newest_episodes() -> None:
    """The energy of each env step is its number; the second environment's episodes are longer."""
    environments = [
        GymAdapter(
            Scripted([(OBSERVATION, 0.0, n % length == 0, {"energy": n}) for n in range(1, 13)]), ("energy",)
        )
        for length in (2, 3)
    ]
    batch = EnvironmentBatch(
        [GuardedEnvironment(lambda fault, each=each: each, "it", 0) for each in environments]
    )
    ended: list[Episode] = []
    statistics = RecentEpisodes(2, window=2, info_metrics=("energy", "sum:energy"))
    assert statistics.average_info == {"energy": None, "sum:energy": None}
    for _ in range(4):
        ended += statistics.add(batch.step(np.zeros((2, 1)), 0))
    infos = (
        {"energy": 2.0, "sum:energy": 3.0},
        {"energy": 3.0, "sum:energy": 6.0},
        {"energy": 4.0, "sum:energy": 7.0},
    )
    assert [(episode.environment, episode.info) for episode in ended] == [
        *((0, infos[0]), (1, infos[1]), (0, infos[2])),
    ]
    assert statistics.average_info == {"energy": 3.5, "sum:energy": 6.5}


def test_the_info_of_an_aborted_episode_is_not_in_the_metrics() -> None:
    statistics = RecentEpisodes(1, info_metrics=("sum:energy",))
    for valid in (False, True):
        every = np.array([True])
        steps: Any = SimpleNamespace(
            reward=np.zeros(1),
            last=every,
            valid=every & valid,
            cut=~every,
            policy_train_step=np.zeros(1),
            info=[{"energy": 5.0}],
        )
        statistics.add(steps)
    assert statistics.average_info == {"sum:energy": 5.0}
