"""Where the learner's time outside of the training graph goes."""

import functools
import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf
from tf_agents.agents.tf_agent import LossInfo

from actorlearner.agents.make import AgentParts
from actorlearner.config.schema import Config, EvaluateConfig, LearnConfig
from actorlearner.errors import RunError
from actorlearner.learning import chief_outputs, learner_metrics, training_loop
from actorlearner.learning.chief_outputs import ChiefOutputs
from actorlearner.learning.cluster import Cluster
from actorlearner.learning.group import LearnerGroup, MultiWorkerGroup
from actorlearner.learning.outputs import Outputs
from actorlearner.learning.training_graph import DataStatistics
from actorlearner.learning.training_loop import train, train_on_thread
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from actorlearner.records import metrics
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.time_shares import TimeShares
from actorlearner.replay.status import ReplayStatus
from tests.support.training import make_parts

_STEPS = 10
_SLOW_S = 8.0


class Clock:
    """Stands in for the time: it advances by a second in each train step, and by what is slow."""

    now = 0.0

    def slow(self, is_slow: bool) -> Callable[..., bool]:
        def act(*_: Any) -> bool:
            self.now += _SLOW_S if is_slow else 0.0
            return True

        return act


class FakeTrainingGraph:
    """Takes train steps in no time."""

    train_steps_per_call = None

    def __init__(self, parts: AgentParts) -> None:
        self.train_step = parts.train_step

    def begin(self, generation: int) -> None:
        pass

    def train(self, iterations: int) -> LossInfo:
        self.train_step.assign_add(iterations)
        return LossInfo(tf.constant(0.5), ())

    def take_statistics(self) -> DataStatistics:
        return DataStatistics(0.0, None, None)


def make_outputs(directory: RunDirectory, parts: AgentParts, config: Config, stop: Stop) -> ChiefOutputs:
    """Returns outputs that publish and save nothing."""
    directory.metrics("learner").parent.mkdir()
    outputs = ChiefOutputs(directory, parts, config, stop)
    outputs._replay = SimpleNamespace(status=lambda timeout_s: ReplayStatus(0, 0, 0))
    nothing = SimpleNamespace(
        publish=lambda: True,
        make_request=lambda inserts: inserts,
        queue=lambda requests: None,
        pending_evaluations=list,
    )
    outputs._publisher = nothing
    outputs._checkpoint = SimpleNamespace(save=lambda evaluations: True, generation=0)
    outputs._export = SimpleNamespace(save=lambda *graph: True, begun=True)
    return outputs


@pytest.mark.parametrize(
    ("slow", "longest", "interval", "requested"),
    [
        ("publish", "publish_fraction", 1_000, 1),  # The last train step is always evaluated.
        ("save", "overhead_fraction", 4, 3),
        ("", "", None, 0),
    ],
)
def test_the_slow_phase_has_the_largest_fraction_and_due_evaluations_are_requested(
    slow: str,
    longest: str,
    interval: int | None,
    requested: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(learner_metrics, "TimeShares", functools.partial(TimeShares, clock=lambda: clock.now))
    monkeypatch.setattr(metrics, "METRICS_INTERVAL_S", math.inf)  # One record after the first call's.
    learn = LearnConfig(train_steps=_STEPS, batch_size=6, publish_interval=1, checkpoint_interval=1)
    config = Config(learn=learn, evaluate=EvaluateConfig(interval=interval))
    requests: list[int] = []
    parts, stop = make_parts(), Stop()
    directory = RunDirectory(tmp_path)
    outputs = make_outputs(directory, parts, config, stop)
    outputs._publisher.publish = clock.slow(slow == "publish")
    outputs._publisher.queue = requests.extend
    outputs._checkpoint.save = clock.slow(slow == "save")
    graph = FakeTrainingGraph(parts)
    train_steps = graph.train

    def take_a_second(iterations: int) -> Any:
        clock.now += iterations
        return train_steps(iterations)

    monkeypatch.setattr(graph, "train", take_a_second)
    outputs.begin_training(graph)
    train(config, LearnerGroup(tf.distribute.get_strategy(), stop), graph, outputs, StartupTimer())
    newest = read_records(directory.metrics("learner"))[-1]
    fractions = dict.fromkeys(("publish_fraction", "overhead_fraction"), 0.0)
    if longest:
        fractions[longest] = _SLOW_S / (_SLOW_S + 1.0)
    assert {key: newest[key] for key in fractions} == pytest.approx(fractions, abs=0.02)
    assert newest["train_step"] == _STEPS
    assert len(requests) == requested


@pytest.mark.parametrize("room", [True, False])
def test_the_last_policy_is_published_and_evaluated_once_it_is_saved(room: bool, tmp_path: Path) -> None:
    """This ends the actors and the eval actor. A learner that died before would need them again."""
    learn = LearnConfig(train_steps=4, batch_size=6, train_steps_per_call=2, publish_interval=2)
    parts, stop = make_parts(), Stop()
    outputs = make_outputs(RunDirectory(tmp_path), parts, Config(learn=learn), stop)
    done: list[tuple[str, int]] = []

    def save(evaluations: Sequence[object]) -> bool:
        done.append(("save", int(parts.train_step)))
        assert list(evaluations) == ["request"], "the checkpoint has the evaluation"
        if not room:
            stop.request()
        return room

    outputs._checkpoint.save = save
    outputs._publisher.publish = lambda: done.append(("publish", int(parts.train_step)))
    outputs._publisher.make_request = lambda inserts: "request"
    outputs._publisher.queue = lambda requests: done.extend(
        ("evaluate", int(parts.train_step)) for _ in requests
    )
    graph = FakeTrainingGraph(parts)
    outputs.begin_training(graph)
    train(outputs._config, LearnerGroup(tf.distribute.get_strategy(), stop), graph, outputs, StartupTimer())
    assert done[:2] == [("publish", 2), ("save", 4)]
    assert [each for each in done if each[0] == "evaluate"] == [("evaluate", 4)] * room
    assert (("publish", 4) in done) == room
    assert len([each for each in done if each[0] == "publish"]) == 1 + room


def test_a_learner_that_stops_while_it_waits_for_data_records_its_last_train_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(learner_metrics, "TimeShares", functools.partial(TimeShares, clock=lambda: clock.now))
    parts, stop = make_parts(), Stop()
    directory = RunDirectory(tmp_path)
    outputs = make_outputs(directory, parts, Config(), stop)
    outputs._checkpoint.save = lambda evaluations, graph: True
    outputs._publisher.flush = lambda timeout_s: True
    graph = FakeTrainingGraph(parts)
    outputs.begin_training(graph)
    for train_step in (10, 20):
        outputs.after_call(train_step, graph.train(10))
    graph.train(4)  # In a call that then waits for data.
    clock.now += 5.0
    outputs.end(stopped=True)
    newest = read_records(directory.metrics("learner"))[-1]
    assert (newest["train_step"], newest["loss"], newest["overhead_fraction"]) == (24, 0.5, 0.0)


@pytest.mark.parametrize(("pending", "held_back"), [([], ["initial"]), (["restored"], [])])
def test_a_resumed_run_evaluates_its_initial_policy_once(
    pending: list[str], held_back: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[str] = []
    publisher = SimpleNamespace(
        publish=lambda: None,
        replace_queue=lambda requests, stop: queued.extend(requests),
        make_request=lambda env_steps: "initial",
        queue=queued.extend,
        pending_evaluations=lambda: queued,
    )
    monkeypatch.setattr(chief_outputs, "Publisher", lambda *arguments: publisher)
    monkeypatch.setattr(chief_outputs, "published_generation", lambda client, stop: 0)
    monkeypatch.setattr(RunDirectory, "run_id", "any")
    outputs = make_outputs(RunDirectory(tmp_path), make_parts(), Config(), Stop())
    outputs._checkpoint = SimpleNamespace(
        begin_generation=lambda published: None, pending_evaluations=lambda: pending, generation=1
    )
    outputs.take_over(None, outputs._replay)
    assert queued == pending
    assert outputs._pending_evaluations() == [*pending, *held_back]
    outputs._queue_held_back()
    outputs._queue_held_back()
    assert queued == [*pending, *held_back]


@pytest.mark.parametrize(("after_s", "expected"), [(600.0, [4, 8, 10]), (0.0, [*range(2, 11, 2)])])
def test_a_checkpoint_is_written_when_train_steps_or_time_have_passed(
    after_s: float, expected: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chief_outputs, "_SAVE_AFTER_S", after_s)
    learn = LearnConfig(
        train_steps=_STEPS, batch_size=6, train_steps_per_call=2, publish_interval=2, checkpoint_interval=4
    )
    config, parts, stop = Config(learn=learn), make_parts(), Stop()
    outputs = make_outputs(RunDirectory(tmp_path), parts, config, stop)
    saved: list[int] = []

    def save(evaluations: object) -> bool:
        if (step := int(parts.train_step)) not in saved:  # As a LearnerCheckpoint.
            saved.append(step)
        return True

    outputs._checkpoint.save = save
    graph = FakeTrainingGraph(parts)
    outputs.begin_training(graph)
    train(config, LearnerGroup(tf.distribute.get_strategy(), stop), graph, outputs, StartupTimer())
    assert saved == expected


def test_an_error_ends_training_that_waits_for_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_loop, "_STARVED_AFTER_S", math.inf)
    data = threading.Event()
    graph = SimpleNamespace(train_step=tf.Variable(7), waiting_for_data=True)
    stop = Stop()

    def check() -> None:
        raise RunError("another learner has taken over this run")

    try:
        with pytest.raises(RunError, match="another learner has taken over this run"):
            train_on_thread(data.wait, graph, stop, LearnerGroup(tf.distribute.get_strategy(), stop), check)
    finally:
        data.set()


def test_the_error_of_an_abandoned_train_step_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, eventually: Callable[..., None]
) -> None:
    monkeypatch.setattr(training_loop, "_STARVED_AFTER_S", 0.0)
    data, stop = threading.Event(), Stop()
    graph = SimpleNamespace(train_step=tf.Variable(7), waiting_for_data=True, in_train_step=False)

    def diverge() -> None:
        data.wait()
        graph.in_train_step = True
        raise RunError("training has diverged")

    stop.request()
    train_on_thread(diverge, graph, stop, LearnerGroup(tf.distribute.get_strategy(), stop), lambda: None)
    data.set()
    eventually(lambda: "a train step failed after the stop: RunError: training has diverged" in caplog.text)


class EndingChief:
    """In place of a link to a chief that has ended when it is polled for the third time."""

    polls = 0

    @property
    def others_have_left(self) -> bool:
        self.polls += 1
        return self.polls == 3


@pytest.mark.parametrize("index", [0, 1])
def test_a_stopped_learner_that_waits_for_its_chief_stays_until_the_chief_has_ended(
    index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chief may be writing a checkpoint; its next call of the training graph needs the others."""
    monkeypatch.setattr(training_loop, "_STARVED_AFTER_S", 0.0)
    data, stop = threading.Event(), Stop()
    graph = SimpleNamespace(train_step=tf.Variable(7), waiting_for_data=True)
    link = EndingChief()
    group = MultiWorkerGroup(
        tf.distribute.get_strategy(), stop, Cluster(("localhost:1", "localhost:2"), index), link
    )
    stop.request()
    try:
        train_on_thread(data.wait, graph, stop, group, lambda: None)
        assert link.polls == (3 if index > 0 else 0)
    finally:
        data.set()


def test_slow_calls_get_a_longer_heartbeat_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call, which also optimises the graph, is no measure: before there is one, all is allowed."""
    clock, beats = Clock(), list[tuple[int, float]]()
    monkeypatch.setattr(training_loop, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(
        training_loop, "beat", lambda what, step, patience_s: beats.append((step, patience_s))
    )
    parts = make_parts()
    graph = FakeTrainingGraph(parts)
    took_s = iter([100.0, 5.0, 5.0, 100.0, 5.0])
    train_steps = graph.train

    def slowly(iterations: int) -> Any:
        clock.now += next(took_s)
        return train_steps(iterations)

    monkeypatch.setattr(graph, "train", slowly)
    config = Config(learn=LearnConfig(train_steps=_STEPS, batch_size=6, train_steps_per_call=2))
    train(config, LearnerGroup(tf.distribute.get_strategy(), Stop()), graph, Outputs(), StartupTimer())
    assert beats == [(2, 900.0), (4, 60.0), (6, 60.0), (8, 900.0), (10, 900.0)]
