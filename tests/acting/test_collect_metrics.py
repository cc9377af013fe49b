"""The records of a collect actor."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from actorlearner.acting.collect_metrics import CollectMetrics
from actorlearner.acting.collector import RANDOM_ORDER, Collector
from actorlearner.acting.recent_episodes import RecentEpisodes
from actorlearner.callbacks.callback import Episode
from actorlearner.config.schema import Config
from actorlearner.environments.environment import EnvSteps
from actorlearner.records import metrics
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.variables.container import PolicyOrder


def test_a_record_has_the_averages_of_info(small_config: Config, tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.prepare(small_config)
    every, nothing = np.array([True]), np.zeros(1)
    steps = EnvSteps(*[nothing] * 9)._replace(last=every, valid=every, info=[{"energy": 5.0}])
    policy: Any = PolicyOrder(generation=0, train_step=3)
    for actor, named in enumerate(([], ["energy", "sum:heat"])):
        episodes = RecentEpisodes(1, info_metrics=named)
        episodes.add(steps)
        CollectMetrics(directory, actor).report(1, episodes, policy, None, 0, dict)
    without, (record,) = (read_records(directory.metrics(f"collect-{actor}")) for actor in (0, 1))
    assert "average_info" not in without[0]
    assert record["average_info"] == {"energy": 5.0, "sum:heat": None}
    curves = EventAccumulator(str(directory.summaries("collect-1"))).Reload().Tags()["tensors"]
    assert [curve for curve in curves if "/info/" in curve] == ["collect/info/energy"]


def test_the_rate_of_a_slow_simulator_is_exact(
    small_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(metrics, "time", SimpleNamespace(monotonic=lambda: now_s, time=time.time))
    directory = RunDirectory(tmp_path)
    directory.prepare(small_config)
    actor = CollectMetrics(directory, 0)
    for env_steps in (1, 2):
        now_s += 400.0
        actor.report(env_steps, RecentEpisodes(1), RANDOM_ORDER, None, 0, dict)
    rates = [record["env_steps_per_s"] for record in read_records(directory.metrics("collect-0"))]
    assert rates == [0.0025, 0.0025]


def test_callbacks_get_the_info_of_each_episode() -> None:
    every, nothing = np.array([True]), np.zeros(1)
    steps = EnvSteps(*[nothing] * 9)._replace(last=every, valid=every, info=[{"energy": 5.0}])
    heard: list[Episode] = []
    parts: Any = SimpleNamespace(
        environments=SimpleNamespace(first=every, observations=nothing, faults=0, step=lambda *_: steps),
        writer=SimpleNamespace(write=lambda steps: None, flush=lambda timeout_s: True),
        metrics=SimpleNamespace(report=lambda *_, **__: None, before={"env_steps": 40}),
        report_episode=heard.append,
        info_metrics=["energy", "mean:energy"],
        in_sequences=False,
        reward_clipping=None,
    )
    Collector(parts).step(lambda *_: nothing, RANDOM_ORDER)
    (episode,) = heard
    assert episode.info == {"energy": 5.0, "mean:energy": 5.0}
    assert episode.env_steps == 41, "those before the actor was started again count"
