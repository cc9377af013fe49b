"""Publishing: nothing waits for it, the newest version wins, and every evaluation arrives."""

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.errors import RunError
from actorlearner.process import waiting
from actorlearner.process.stop import Stop
from actorlearner.variables import publisher as publisher_module
from actorlearner.variables.container import (
    EVALUATIONS_KEPT,
    ContainerStatus,
    EvaluationRequest,
    PolicyOrder,
    PolicyVariables,
    RunEnd,
)
from actorlearner.variables.publisher import Publisher

LONG_S = 30.0

Eventually = Callable[..., None]


class Pausing(Stop):
    """A stop that is requested in the third wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses_s: list[float] = []

    def wait(self, timeout_s: float) -> bool:
        self.pauses_s.append(timeout_s)
        if len(self.pauses_s) == 3:
            self.request()
        return super().wait(0.0)


class PausedContainer:
    """A container that stores one version for each release of `let`."""

    def __init__(self, client: Any) -> None:
        self.pushed: list[tuple[str, int, float]] = []
        self.begun = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.failure: Exception | None = None
        self.versions = 0
        self.other: PolicyVariables | None = None
        self.evaluated = 0
        self.run_end: RunEnd | None = None

    def status(self, timeout_s: int) -> ContainerStatus:
        evaluations = sum(what.startswith("evaluation") for what, _, _ in self.pushed)
        return ContainerStatus(self.versions, evaluations - self.evaluated)

    def pull(self) -> PolicyVariables | None:
        return self.other

    def push(self, version: PolicyVariables) -> None:
        self._take("newest", version)
        self.versions += 1

    def push_evaluation(self, request: EvaluationRequest) -> None:
        self._take(f"evaluation after {request.env_steps} env steps", request.version)

    def push_end(self, end: RunEnd) -> None:
        self.pushed.append(("end", end.order.train_step, 0.0))
        self.run_end = end

    def end(self, timeout_s: int) -> RunEnd | None:
        return self.run_end

    def clear_evaluations(self) -> None:
        self.pushed = [pushed for pushed in self.pushed if not pushed[0].startswith("evaluation")]

    def _take(self, what: str, version: PolicyVariables) -> None:
        self.begun.release()
        assert self.let.acquire(timeout=LONG_S)
        if self.failure:
            raise self.failure
        self.pushed.append((what, version.train_step, float(version.values[0].flat[0])))


@pytest.fixture(name="parts")
def _parts() -> AgentParts:
    """The policy variables and the train step, which the publisher reads; no agent."""
    agent: Any = None
    return AgentParts(agent, tf.Variable(0, dtype=tf.int64), [tf.Variable([[0.5, 1.0]]), tf.Variable([2.0])])


@pytest.fixture(name="container")
def _container(monkeypatch: pytest.MonkeyPatch) -> PausedContainer:
    container = PausedContainer(None)
    monkeypatch.setattr(publisher_module, "VariableContainer", lambda client, run_id: container)
    return container


@pytest.fixture(name="publisher")
def _publisher(
    parts: AgentParts, container: PausedContainer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Publisher]:
    """One that polls the server only before it pushes."""
    monkeypatch.setattr(publisher_module, "_POLL_INTERVAL_S", LONG_S)
    publisher = Publisher(None, parts)
    yield publisher
    container.let.release(10)  # So that the thread is not left in a push.


def train_to(parts: AgentParts, train_step: int) -> None:
    """Changes the variables; each version's first number is its train step."""
    parts.train_step.assign(train_step)
    variable = parts.policy_variables[0]
    variable.assign(variable * 0 + float(train_step))


def test_a_newer_version_replaces_versions_that_wait(
    parts: AgentParts, container: PausedContainer, publisher: Publisher
) -> None:
    train_to(parts, 1)
    publisher.publish()
    assert container.begun.acquire(timeout=LONG_S)
    for train_step in (2, 3, 4):  # While the server is busy with the first.
        train_to(parts, train_step)
        publisher.publish()
    assert not publisher.flush(timeout_s=0.05)
    container.let.release(2)
    assert publisher.flush(LONG_S)
    assert container.pushed == [("newest", 1, 1.0), ("newest", 4, 4.0)]


def test_it_pushes_the_variables_as_they_were_at_publish(
    parts: AgentParts, container: PausedContainer, publisher: Publisher
) -> None:
    train_to(parts, 7)
    publisher.publish()
    train_to(parts, 8)  # Training goes on before the server has stored it.
    container.let.release()
    assert publisher.flush(LONG_S)
    assert container.pushed == [("newest", 7, 7.0)]


def test_callbacks_hear_once_of_a_version_that_is_published_twice(
    parts: AgentParts, container: PausedContainer
) -> None:
    """A learner that begins at the last train step publishes it when it takes over, and when it ends."""
    heard: list[int] = []
    publisher = Publisher(None, parts, published=lambda version: heard.append(version.train_step))
    for train_step in (7, 7, 8):
        train_to(parts, train_step)
        publisher.publish()
        container.let.release()
        assert publisher.flush(LONG_S)
    assert [train_step for _, train_step, _ in container.pushed] == [7, 7, 8]
    assert heard == [7, 8]


def test_every_evaluation_arrives_in_order(
    parts: AgentParts, container: PausedContainer, publisher: Publisher
) -> None:
    for train_step in (10, 20, 30):
        train_to(parts, train_step)
        publisher.queue([publisher.make_request(env_steps=100 + train_step)])
        publisher.publish()
    container.let.release(5)
    assert publisher.flush(LONG_S)
    evaluations = [pushed for pushed in container.pushed if pushed[0] != "newest"]
    assert evaluations == [(f"evaluation after {100 + k} env steps", k, float(k)) for k in (10, 20, 30)]
    assert container.pushed[-1] == ("newest", 30, 30.0)


def test_a_failed_push_is_raised_on_the_training_thread(
    parts: AgentParts, container: PausedContainer, publisher: Publisher
) -> None:
    container.failure = ValueError("shapes differ")
    publisher.publish()
    container.let.release()
    with pytest.raises(ValueError, match="shapes differ"):
        publisher.flush(LONG_S)
    for call in (publisher.publish, publisher.check):
        with pytest.raises(ValueError, match="shapes differ"):
            call()


@pytest.mark.parametrize("spoilt", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_never_published(
    parts: AgentParts, container: PausedContainer, publisher: Publisher, spoilt: float
) -> None:
    train_to(parts, 10)
    publisher.publish()
    variable = parts.policy_variables[-1]
    variable.assign(variable * 0 + spoilt)
    with pytest.raises(RunError, match="the policy of train step 10 has weights that are NaN or infinite"):
        publisher.publish()
    with pytest.raises(RunError):
        publisher.queue([publisher.make_request(env_steps=1)])
    container.let.release()
    assert publisher.flush(LONG_S)
    assert container.pushed == [("newest", 10, 10.0)]


def publish_twice(parts: AgentParts, container: PausedContainer, publisher: Publisher) -> None:
    """Publishes train steps 10 and 20, both also for evaluation; later pushes do not pause either."""
    container.let.release(20)
    for train_step in (10, 20):
        train_to(parts, train_step)
        publisher.queue([publisher.make_request(env_steps=train_step)])
        publisher.publish()
        assert publisher.flush(LONG_S)


def test_versions_that_a_server_lost_are_pushed_again(
    parts: AgentParts,
    container: PausedContainer,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Eventually,
) -> None:
    monkeypatch.setattr(publisher_module, "_POLL_INTERVAL_S", 0.01)
    publish_twice(parts, container, publisher)
    before = len(container.pushed)
    container.versions = 1  # As restored from a checkpoint.
    eventually(lambda: len(container.pushed) >= before + 3)
    assert container.pushed[before:] == [
        ("evaluation after 10 env steps", 10, 10.0),
        ("evaluation after 20 env steps", 20, 20.0),
        ("newest", 20, 20.0),
    ]


def test_a_restarted_server_gets_all_evaluations_in_order(
    parts: AgentParts, container: PausedContainer, publisher: Publisher
) -> None:
    """The eval actor skips a train step that comes after a later one."""
    publish_twice(parts, container, publisher)
    container.versions, container.pushed = 0, []  # A restarted server without a checkpoint has none.
    train_to(parts, 30)
    publisher.queue([publisher.make_request(env_steps=30)])
    assert publisher.flush(LONG_S)
    assert container.pushed == [
        *((f"evaluation after {k} env steps", k, float(k)) for k in (10, 20, 30)),
        ("newest", 20, 20.0),
    ]


def test_a_server_that_restarts_twice_gets_all_evaluations_in_order(
    parts: AgentParts, container: PausedContainer, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has taken the first evaluation again, and not the newest version, when it restarts again."""

    def pause(seconds: float) -> None:
        container.failure = None

    monkeypatch.setattr(publisher_module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    for train_step in (10, 20):
        train_to(parts, train_step)
        publisher.queue([publisher.make_request(env_steps=train_step)])
    publisher.publish()
    for _ in range(3):
        container.let.release()
        assert container.begun.acquire(timeout=LONG_S)
    assert publisher.flush(LONG_S)
    container.versions, container.pushed = 0, []
    publisher.publish()
    container.let.release()
    for _ in range(2):  # The second push is in progress now.
        assert container.begun.acquire(timeout=LONG_S)
    container.failure, container.pushed = RuntimeError("the connection was closed"), []
    container.let.release(5)
    assert publisher.flush(LONG_S)
    assert container.pushed == [
        *((f"evaluation after {k} env steps", k, float(k)) for k in (10, 20)),
        ("newest", 20, 20.0),
    ]


def test_the_end_is_announced_last_and_delivered_once_it_is_saved(
    parts: AgentParts,
    container: PausedContainer,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Eventually,
) -> None:
    monkeypatch.setattr(publisher_module, "_POLL_INTERVAL_S", 0.01)
    train_to(parts, 10)
    publisher.queue([publisher.make_request(env_steps=10)])
    publisher.publish()
    publisher.finish()
    assert not publisher.delivered()
    container.let.release(10)
    assert publisher.flush(LONG_S)
    all_pushed = ["evaluation after 10 env steps", "newest", "end"]
    assert [what for what, _, _ in container.pushed] == all_pushed
    assert not publisher.delivered()  # The server has not saved it.
    container.versions, container.run_end = 0, None  # It was started again, and begins with nothing.
    eventually(lambda: len(container.pushed) == 6)
    assert publisher.flush(LONG_S)
    assert [what for what, _, _ in container.pushed[3:]] == all_pushed
    assert container.run_end is not None
    container.run_end = container.run_end._replace(saved=True)
    assert publisher.delivered()


def test_an_end_that_a_restarted_server_has_lost_is_announced_again(
    parts: AgentParts, container: PausedContainer, publisher: Publisher
) -> None:
    """Its checkpoint was written between the last version and the end, so the count of versions is right."""
    container.let.release()
    train_to(parts, 10)
    publisher.publish()
    publisher.finish()
    assert publisher.flush(LONG_S)
    container.run_end = None
    assert not publisher.delivered()
    assert publisher.flush(LONG_S)
    assert container.run_end == RunEnd(PolicyOrder(0, 10))


def test_evaluated_policies_are_freed(
    parts: AgentParts,
    container: PausedContainer,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Eventually,
) -> None:
    """Neither in memory, nor for a server that was started again."""
    monkeypatch.setattr(publisher_module, "_POLL_INTERVAL_S", 0.01)
    container.let.release(20)
    train_to(parts, 10)
    publisher.publish()
    for train_step in (10, 20, 30):
        train_to(parts, train_step)
        publisher.queue([publisher.make_request(env_steps=train_step)])
    assert publisher.flush(LONG_S)
    container.evaluated = 2
    eventually(lambda: len(publisher._evaluations_pushed) == 1)
    # As of a server that begins with nothing.
    container.versions, container.evaluated, container.pushed = 0, 0, []
    eventually(lambda: len(container.pushed) >= 2)
    assert container.pushed == [("evaluation after 30 env steps", 30, 30.0), ("newest", 10, 10.0)]


def warnings_of_slow_evaluations(
    container: PausedContainer, publisher: Publisher, evaluated: int, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Queues two policies more than the server keeps, of which so many are evaluated by then."""
    warnings: list[str] = []
    monkeypatch.setattr(publisher_module, "warn", warnings.append)
    container.let.release(EVALUATIONS_KEPT + 2)
    container.versions = 1
    publisher.queue([EvaluationRequest(PolicyVariables(0, [np.zeros(1)]), 0)] * EVALUATIONS_KEPT)
    assert publisher.flush(LONG_S)
    assert not warnings
    container.evaluated = evaluated
    for _ in range(2):
        publisher.queue([EvaluationRequest(PolicyVariables(0, [np.zeros(1)]), 0)])
        assert publisher.flush(LONG_S)
    return warnings


def test_slow_evaluations_cause_one_warning(
    container: PausedContainer, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert warnings_of_slow_evaluations(container, publisher, 0, monkeypatch) == [
        f"{EVALUATIONS_KEPT} policies wait for their evaluation, and further ones replace the oldest: raise "
        "evaluate.interval, or lower evaluate.episodes"
    ]


def test_evaluations_that_keep_up_cause_no_warning(
    container: PausedContainer, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert warnings_of_slow_evaluations(container, publisher, 2, monkeypatch) == []


def test_a_learner_that_was_replaced_ends(
    parts: AgentParts,
    container: PausedContainer,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Eventually,
) -> None:
    monkeypatch.setattr(publisher_module, "_POLL_INTERVAL_S", 0.01)
    container.let.release()
    publisher.publish()
    assert publisher.flush(LONG_S)
    publisher.check()
    container.other = PolicyVariables(7, [], generation=1)
    container.versions += 1
    eventually(lambda: publisher._failure is not None)
    for call in (publisher.check, publisher.publish):
        with pytest.raises(
            RunError, match="another learner, which is at train step 7, has taken over this run"
        ):
            call()


def test_pending_evaluations_are_the_versions_not_evaluated_yet(
    parts: AgentParts, container: PausedContainer, publisher: Publisher
) -> None:
    for train_step in (10, 20, 30):
        train_to(parts, train_step)
        publisher.queue([publisher.make_request(env_steps=train_step)])
    assert [request.version.train_step for request in publisher.pending_evaluations()] == [10, 20, 30]
    container.let.release(3)
    assert publisher.flush(LONG_S)
    assert [request.version.train_step for request in publisher.pending_evaluations()] == [10, 20, 30]
    container.versions = 1
    container.evaluated = 1
    assert [request.version.train_step for request in publisher.pending_evaluations()] == [20, 30]
    container.evaluated = 3
    assert publisher.pending_evaluations() == []


def test_evaluations_that_a_restarted_server_has_lost_are_pending(
    parts: AgentParts, container: PausedContainer, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even before the publisher's thread knows about the restart."""
    container.let.release(2)
    train_to(parts, 10)
    publisher.queue([publisher.make_request(env_steps=10)])
    publisher.publish()
    assert publisher.flush(LONG_S)
    monkeypatch.setattr(publisher, "_poll", lambda: None)
    container.versions, container.pushed = 0, []
    assert [request.version.train_step for request in publisher.pending_evaluations()] == [10]


def test_a_takeover_replaces_the_queued_evaluations(
    parts: AgentParts, container: PausedContainer, publisher: Publisher
) -> None:
    container.pushed = [("evaluation of a train step that is lost", 90, 90.0)]
    train_to(parts, 50)
    request = EvaluationRequest(PolicyVariables(50, [parts.policy_variables[0].numpy()], 1), 60)
    container.let.release()
    publisher.replace_queue([request], Stop())
    assert publisher.flush(LONG_S)
    assert container.pushed == [("evaluation after 60 env steps", 50, 50.0)]


def test_a_failing_takeover_pauses_between_attempts_and_ends_at_a_stop(
    container: PausedContainer, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts that fail at once neither take a whole core nor ignore a SIGTERM."""
    tries = []

    def fail() -> None:
        tries.append(1)
        assert len(tries) < 10, "it retries without a pause"
        raise RuntimeError("permission denied")

    monkeypatch.setattr(container, "clear_evaluations", fail)
    stop = Pausing()
    publisher.replace_queue([EvaluationRequest(PolicyVariables(50, []), 60)], stop)
    assert len(tries) == 3
    assert stop.pauses_s == [publisher_module._RETRY_S] * 3
    assert publisher.pending_evaluations() == []


def test_a_learner_takes_over_once_the_server_is_back(
    parts: AgentParts, container: PausedContainer, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = container.status
    tries = []

    def away_at_first(timeout_s: int) -> ContainerStatus:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("failed to connect to all addresses")
        return status(timeout_s)

    def cleared() -> None:
        assert len(tries) == 3, "the call without a deadline comes after the one with one"

    beats: list[str] = []
    monkeypatch.setattr(waiting, "beat", beats.append)
    monkeypatch.setattr(container, "status", away_at_first)
    monkeypatch.setattr(container, "clear_evaluations", cleared)
    monkeypatch.setattr(publisher_module, "_RETRY_S", 0.01)
    container.let.release()
    publisher.replace_queue([publisher.make_request(env_steps=60)], Stop())
    assert publisher.flush(LONG_S)
    assert [what for what, _, _ in container.pushed] == ["evaluation after 60 env steps"]
    wait = "waiting for the replay server to drop the evaluations that an earlier learner queued"
    assert beats == [wait] * 2


def test_a_failed_push_is_repeated_after_a_pause(
    container: PausedContainer, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            container.failure = None

    container.failure = RuntimeError("permission denied")
    monkeypatch.setattr(publisher_module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    container.let.release(3)
    publisher.publish()
    assert publisher.flush(LONG_S)
    assert len(pauses) == 2
    assert len(container.pushed) == 1
