"""How a learner of a group learns that all of them stop."""

import signal
import threading
from unittest import mock

import pytest
import tensorflow as tf

from actorlearner.errors import EXIT_INTERRUPTED, EXIT_TERMINATED
from actorlearner.learning import group
from actorlearner.learning.cluster import Cluster
from actorlearner.learning.group import MultiWorkerGroup
from actorlearner.process.stop import Stop


@pytest.fixture
def stop() -> Stop:
    return Stop()


@pytest.fixture
def workers(stop: Stop) -> MultiWorkerGroup:
    cluster = Cluster(("localhost:1", "localhost:2"), 0)
    return MultiWorkerGroup(tf.distribute.get_strategy(), stop, cluster, mock.Mock())


def agree(workers: MultiWorkerGroup) -> None:
    """As a call of the training graph does in which another learner wants to stop."""
    workers._all_votes.assign(1.0)


def test_without_a_vote_to_stop_training_continues(workers: MultiWorkerGroup, stop: Stop) -> None:
    assert not workers.stopped
    assert not stop.requested


def test_a_stop_report_after_the_vote_sets_the_exit_code(
    workers: MultiWorkerGroup, stop: Stop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "_REPORT_S", 60.0)
    agree(workers)
    report = threading.Timer(0.3, stop.request, [signal.SIGINT])
    report.start()
    assert workers.stopped
    assert stop.exit_code == EXIT_INTERRUPTED
    report.join()


def test_a_vote_to_stop_without_a_report_still_stops(
    workers: MultiWorkerGroup, stop: Stop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "_REPORT_S", 0.01)
    agree(workers)
    assert workers.stopped
    assert stop.requested
    assert stop.exit_code == EXIT_TERMINATED
