"""What the learner reports of its own speed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.learning import learner_metrics
from actorlearner.learning.learner_metrics import LearnerMetrics
from actorlearner.learning.training_graph import DataStatistics
from actorlearner.records import metrics as metrics_module
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.replay.status import ReplayStatus


def test_the_first_rate_of_a_resumed_run_counts_only_its_own_train_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one of all train steps since the run began."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(metrics_module.time, "monotonic", lambda: clock.now)
    directory = RunDirectory(tmp_path)
    directory.metrics("learner").parent.mkdir()
    shares = SimpleNamespace(take=lambda: {"graph": 0.5, "publish": 0.25})
    monkeypatch.setattr(learner_metrics, "TimeShares", lambda *parts: shares)
    graph: Any = SimpleNamespace(
        train_step=tf.Variable(5_000), take_statistics=lambda: DataStatistics(1.0, 0.0, 0)
    )
    summaries = Summaries(tmp_path / "summaries")
    metrics = LearnerMetrics(directory, summaries, graph, lambda: ReplayStatus(10, 10, 10))
    clock.now += 4.0
    metrics.add(5_010, LossInfo(1.0, ()), last=False)
    (record,) = read_records(directory.metrics("learner"))
    assert record["train_step"] == 5_010
    assert record["train_steps_per_s"] == 2.5
    assert record["data_wait_fraction"] == 0.25
    assert record["publish_fraction"] == 0.25
    assert record["overhead_fraction"] == 0.25
