"""Publishing: nothing waits for it, the newest version wins, and every evaluation arrives."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from actorlearner.agents.make import AgentParts
from actorlearner.errors import RunError
from actorlearner.learning import publisher as publisher_module
from actorlearner.learning.publisher import Publisher
from actorlearner.variables.container import EvaluationRequest, PolicyVariables
from tests.support.training import make_parts

LONG_S = 30.0


class HeldContainer:
    """A container whose server takes a push only when it is let to."""

    def __init__(self, client: Any) -> None:
        self.pushed: list[tuple[str, int, float]] = []
        self.begun = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.failure: Exception | None = None

    def push(self, version: PolicyVariables) -> None:
        self._take("newest", version)

    def push_evaluation(self, request: EvaluationRequest) -> None:
        self._take(f"evaluation after {request.env_steps} env steps", request.version)

    def _take(self, what: str, version: PolicyVariables) -> None:
        self.begun.release()
        assert self.let.acquire(timeout=LONG_S)
        if self.failure:
            raise self.failure
        self.pushed.append((what, version.train_step, float(version.values[0].flat[0])))


@pytest.fixture(name="parts")
def _parts() -> AgentParts:
    return make_parts()


@pytest.fixture(name="container")
def _container(monkeypatch: pytest.MonkeyPatch) -> HeldContainer:
    container = HeldContainer(None)
    monkeypatch.setattr(publisher_module, "VariableContainer", lambda client: container)
    return container


@pytest.fixture(name="publisher")
def _publisher(parts: AgentParts, container: HeldContainer) -> Iterator[Publisher]:
    publisher = Publisher(None, parts)
    yield publisher
    for _ in range(10):
        container.let.release()  # So that the thread is not left in a push.


def train_to(parts: AgentParts, train_step: int) -> None:
    """Changes the variables; each version's first number is its train step."""
    parts.train_step.assign(train_step)
    variable = parts.policy_variables[0]
    variable.assign(variable * 0 + float(train_step))


def test_the_newest_version_overtakes_those_that_wait(
    parts: AgentParts, container: HeldContainer, publisher: Publisher
) -> None:
    train_to(parts, 1)
    publisher.publish()
    assert container.begun.acquire(timeout=LONG_S)
    for train_step in (2, 3, 4):  # While the server is busy with the first.
        train_to(parts, train_step)
        publisher.publish()
    assert not publisher.flush(timeout_s=0.05)
    for _ in range(2):
        container.let.release()
    assert publisher.flush(LONG_S)
    assert container.pushed == [("newest", 1, 1.0), ("newest", 4, 4.0)]


def test_what_is_pushed_are_the_variables_when_it_was_told_to(
    parts: AgentParts, container: HeldContainer, publisher: Publisher
) -> None:
    train_to(parts, 7)
    publisher.publish()
    train_to(parts, 8)  # Training goes on before the server has taken it.
    container.let.release()
    assert publisher.flush(LONG_S)
    assert container.pushed == [("newest", 7, 7.0)]


def test_every_evaluation_arrives_in_order(
    parts: AgentParts, container: HeldContainer, publisher: Publisher
) -> None:
    for train_step in (10, 20, 30):
        train_to(parts, train_step)
        publisher.publish_for_evaluation(env_steps=100 + train_step)
        publisher.publish()
    for _ in range(5):
        container.let.release()
    assert publisher.flush(LONG_S)
    evaluations = [pushed for pushed in container.pushed if pushed[0] != "newest"]
    assert evaluations == [(f"evaluation after {100 + k} env steps", k, float(k)) for k in (10, 20, 30)]
    assert container.pushed[-1] == ("newest", 30, 30.0)


def test_a_failed_push_is_raised_where_training_goes_on(
    parts: AgentParts, container: HeldContainer, publisher: Publisher
) -> None:
    container.failure = ValueError("shapes differ")
    publisher.publish()
    container.let.release()
    with pytest.raises(ValueError, match="shapes differ"):
        publisher.flush(LONG_S)
    with pytest.raises(ValueError, match="shapes differ"):
        publisher.publish()


@pytest.mark.parametrize("spoilt", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_never_published(
    parts: AgentParts, container: HeldContainer, publisher: Publisher, spoilt: float
) -> None:
    train_to(parts, 10)
    publisher.publish()
    variable = parts.policy_variables[-1]
    variable.assign(variable * 0 + spoilt)
    with pytest.raises(RunError, match="the policy of train step 10 has weights that are NaN or infinite"):
        publisher.publish()
    with pytest.raises(RunError):
        publisher.publish_for_evaluation(env_steps=1)
    container.let.release()
    assert publisher.flush(LONG_S)
    assert container.pushed == [("newest", 10, 10.0)]
