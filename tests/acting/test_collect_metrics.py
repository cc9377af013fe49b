"""The records of a collect actor."""

import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from actorlearner.acting.collect_metrics import RANDOM_ORDER, CollectMetrics
from actorlearner.acting.collector import Collector
from actorlearner.agents.experience import Experience
from actorlearner.callbacks.callback import Episode
from actorlearner.config.schema import Config
from actorlearner.environments.environment import EnvSteps
from actorlearner.process.stop import Stop
from actorlearner.records import metrics as records
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.reverb_calls import NoAnswerError
from actorlearner.variables.container import PolicyOrder

NOTHING, EVERY = np.zeros(1), np.array([True])
ENDS = EnvSteps(*[NOTHING] * 9)._replace(last=EVERY, valid=EVERY, info=[{"energy": 5.0}])
"""The last env step of an episode in the only environment."""


def make_metrics(directory: RunDirectory, actor: int = 0, info_metrics: Sequence[str] = ()) -> CollectMetrics:
    """The metrics of an actor with one environment, whose replay server does not answer."""

    def status(timeout_s: int) -> None:
        raise NoAnswerError

    parts: list[Any] = [
        SimpleNamespace(first=EVERY, faults=0),
        SimpleNamespace(status=status),
        SimpleNamespace(age_s=2.0),
    ]
    return CollectMetrics(directory, actor, *parts, info_metrics)


@pytest.fixture(name="directory")
def _directory(small_config: Config, tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path)
    directory.prepare(small_config)
    return directory


def test_a_record_has_the_averages_of_info(directory: RunDirectory) -> None:
    for actor, named in enumerate(([], ["energy", "sum:heat"])):
        metrics = make_metrics(directory, actor, named)
        metrics.add(ENDS, PolicyOrder(generation=0, train_step=3))
        metrics.report()
    without, (record,) = (read_records(directory.metrics(f"collect-{actor}")) for actor in (0, 1))
    assert "average_info" not in without[0]
    assert record["average_info"] == {"energy": 5.0, "sum:heat": None}
    curves = EventAccumulator(str(directory.summaries("collect-1"))).Reload().Tags()["tensors"]
    assert [curve for curve in curves if "/info/" in curve] == ["collect/info/energy"]


def test_random_actions_have_no_age(directory: RunDirectory) -> None:
    metrics = make_metrics(directory)
    metrics.report()
    metrics.add(ENDS, PolicyOrder(generation=0, train_step=3))
    metrics.report(final=True)
    found = read_records(directory.metrics("collect-0"))
    assert [record["policy_age_s"] for record in found] == [None, 2.0]
    assert [record["policy_train_step"] for record in found] == [-1, 3]


def test_the_rate_of_a_slow_simulator_is_exact(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(records, "time", SimpleNamespace(monotonic=lambda: now_s, time=time.time))
    actor = make_metrics(directory)
    for _ in range(2):
        now_s += 400.0
        actor.add(ENDS, RANDOM_ORDER)
        actor.report()
    rates = [record["env_steps_per_s"] for record in read_records(directory.metrics("collect-0"))]
    assert rates == [0.0025, 0.0025]


def test_the_counters_continue_after_a_restart(directory: RunDirectory) -> None:
    for env_steps in (1, 2):
        metrics = make_metrics(directory)
        (episode,) = metrics.add(ENDS, RANDOM_ORDER)
        assert episode.env_steps == env_steps
        metrics.report()
    found = read_records(directory.metrics("collect-0"))
    assert [(record["env_steps"], record["episodes"]) for record in found] == [(1, 1), (2, 2)]


def test_callbacks_get_each_episode(small_config: Config, directory: RunDirectory) -> None:
    heard: list[Episode] = []
    environments: Any = SimpleNamespace(first=EVERY, observations=NOTHING, faults=0, step=lambda *_: ENDS)
    writer = SimpleNamespace(write=lambda steps: None, flush=lambda timeout_s: True)
    layout = SimpleNamespace(writer=lambda *_: writer, experience=Experience())
    replay: Any = SimpleNamespace(layout=layout, client=None)
    metrics = make_metrics(directory, info_metrics=["energy", "mean:energy"])
    collector = Collector(
        small_config,
        environments,
        replay,
        None,
        metrics,
        Stop(),
        notify=heard.append,  # type: ignore[arg-type]
    )
    collector.step(lambda *_: NOTHING, RANDOM_ORDER)  # type: ignore[arg-type]
    (episode,) = heard
    assert episode.info == {"energy": 5.0, "mean:energy": 5.0}
    assert (episode.length, episode.env_steps, episode.train_step) == (1, 1, 0)
