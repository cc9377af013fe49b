"""Policy variables through a real server: versions, the queue of evaluations, and the puller."""

import dataclasses
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import reverb
import tensorflow as tf

from actorlearner.process.stop import Stop
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.variables import container as container_module
from actorlearner.variables import puller as puller_module
from actorlearner.variables.container import (
    ContainerStatus,
    EvaluationRequest,
    PolicyVariables,
    VariableContainer,
    assigner,
    variable_tables,
)
from actorlearner.variables.puller import VariablePuller
from tests.support.processes import wait_for

TIMEOUT_S = 10
SHAPES = [((3, 2), np.float32), ((), np.float32), ((4,), np.float64), ((2,), np.int32)]
INTERVAL_S = 0.01

Eventually = Callable[..., None]


def make_variables() -> list[tf.Variable]:
    return [tf.Variable(tf.zeros(shape, dtype)) for shape, dtype in SHAPES]


def version(train_step: int, generation: int = 0) -> PolicyVariables:
    """A version whose values are its train step."""
    values = [np.full(shape, train_step, dtype) for shape, dtype in SHAPES]
    return PolicyVariables(train_step, values, generation)


def assert_equals_version(actual: PolicyVariables, train_step: int) -> None:
    assert actual.train_step == train_step
    for value, expected in zip(actual.values, version(train_step).values, strict=True):
        assert value.dtype == expected.dtype
        np.testing.assert_array_equal(value, expected)


def answers(client: reverb.Client) -> bool:
    try:
        client.server_info(TIMEOUT_S)
    except UNREACHABLE:
        return False
    return True


@dataclasses.dataclass
class Server:
    """A container that can be stopped and started again at its port, empty as after a crash."""

    port: int
    _server: reverb.Server | None = None

    def start(self) -> VariableContainer:
        """Returns a client that has reached the server.

        All clients of an address in a process share a connection. That to the server before may not have been
        seen to be closed yet; what is asked meanwhile fails.
        """
        self._server = reverb.Server(variable_tables(make_variables()), self.port)
        client = reverb.Client(f"localhost:{self.port}")
        wait_for(lambda: answers(client), "an answer of the server")
        return VariableContainer(client)

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None


@pytest.fixture
def server(free_port: int) -> Iterator[Server]:
    server = Server(free_port)
    yield server
    server.stop()


@pytest.fixture
def container(server: Server) -> VariableContainer:
    return server.start()


def test_there_is_no_version_before_the_first_push(container: VariableContainer) -> None:
    assert container.status(TIMEOUT_S) == (0, 0)


def test_the_newest_version_can_be_pulled_repeatedly(container: VariableContainer) -> None:
    for count, train_step in enumerate((0, 20, 40), start=1):
        container.push(version(train_step))
        assert container.status(TIMEOUT_S).versions == count
        for _ in range(3):
            assert_equals_version(container.pull(), train_step)
        assert container.status(TIMEOUT_S).versions == count


def test_values_and_train_step_belong_together_while_versions_change(container: VariableContainer) -> None:
    container.push(version(0))

    def push_all() -> None:
        for train_step in range(1, 200):
            container.push(version(train_step))

    pushing = threading.Thread(target=push_all)
    pushing.start()
    seen = []
    while pushing.is_alive():
        pulled = container.pull()
        assert_equals_version(pulled, pulled.train_step)
        seen.append(pulled.train_step)
    pushing.join()
    assert seen == sorted(seen)
    assert_equals_version(container.pull(), 199)


def test_an_older_version_does_not_overwrite_a_newer_one(container: VariableContainer) -> None:
    orders = [(0, 10), (0, 20), (0, 15), (1, 5), (0, 1_000_000), (1, 6), (0, 7), (7_000, 3), (6_999, 2**39)]
    newest = orders[0]
    for generation, train_step in orders:
        container.push(version(train_step, generation))
        newest = max(newest, (generation, train_step))
        assert container.pull().order == newest
    assert_equals_version(container.pull(), 3)


def test_a_version_replaces_one_of_equal_order(container: VariableContainer) -> None:
    """Unmodified learners of TF-Agents push all their versions with one priority."""
    for number in range(4):
        values = [np.full(shape, number, dtype) for shape, dtype in SHAPES]
        container.push(PolicyVariables(7, values))
        np.testing.assert_array_equal(container.pull().values[0], values[0])


def test_a_cleared_container_is_empty_and_can_be_filled_again(container: VariableContainer) -> None:
    for train_step in (0, 20):
        container.push(version(train_step, generation=3))
        container.push_evaluation(EvaluationRequest(version(train_step), env_steps=1))
    container.clear()
    assert container.status(TIMEOUT_S) == (0, 0)
    container.push(version(10))  # Older: no newer version is left.
    assert container.status(TIMEOUT_S).versions == 1  # So its learner sees the loss.
    assert_equals_version(container.pull(), 10)


def test_a_version_of_other_shapes_is_refused(container: VariableContainer) -> None:
    container.push(version(1))
    other = version(2)
    with pytest.raises(ValueError, match="signature"):
        container.push(dataclasses.replace(other, values=[np.zeros((5, 5), np.float32), *other.values[1:]]))
    assert_equals_version(container.pull(), 1)


def test_a_request_stays_queued_until_it_is_removed(container: VariableContainer) -> None:
    for train_step in (0, 100, 200):
        container.push_evaluation(EvaluationRequest(version(train_step), env_steps=7 * train_step))
    assert container.status(TIMEOUT_S).evaluations_waiting == 3
    for left, train_step in ((2, 0), (1, 100), (0, 200)):
        for _ in range(2):  # Also to an eval actor that is started again.
            request = container.next_evaluation()
            assert_equals_version(request.version, train_step)
            assert request.env_steps == 7 * train_step
        container.remove_evaluation(request)
        assert container.status(TIMEOUT_S).evaluations_waiting == left
    container.remove_evaluation(request)  # Which another eval actor may have done.
    assert container.status(TIMEOUT_S).versions == 0  # The queue is not what actors pull.


def test_without_an_eval_actor_the_oldest_evaluations_are_dropped(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_module, "EVALUATIONS_KEPT", 3)
    container = server.start()
    for train_step in range(8):  # Returning at all shows that no push waits.
        container.push_evaluation(EvaluationRequest(version(train_step), env_steps=0))
    assert container.status(TIMEOUT_S).evaluations_waiting == 3
    taken = []
    for _ in range(3):
        request = container.next_evaluation()
        container.remove_evaluation(request)
        taken.append(request.version.train_step)
    assert taken == [5, 6, 7]


def test_assigner_sets_all_variables_and_the_train_step(container: VariableContainer) -> None:
    variables, train_step = make_variables(), tf.Variable(0, dtype=tf.int64)
    update = assigner(variables, train_step)
    for generation, step in enumerate((20, 3)):
        container.push(version(step, generation))
        update(container.pull())
        assert_equals_version(PolicyVariables(int(train_step), [v.numpy() for v in variables]), step)


@dataclasses.dataclass
class Calls:
    """Counts a puller's calls of the container."""

    polls: int = 0
    pulls: int = 0


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    poll, pull = VariableContainer.status, VariableContainer.pull

    def counted_poll(self: VariableContainer, timeout_s: int) -> ContainerStatus:
        try:
            return poll(self, timeout_s)
        finally:
            calls.polls += 1

    def counted_pull(self: VariableContainer) -> PolicyVariables:
        calls.pulls += 1
        return pull(self)

    monkeypatch.setattr(VariableContainer, "status", counted_poll)
    monkeypatch.setattr(VariableContainer, "pull", counted_pull)
    return calls


@pytest.fixture
def stop() -> Iterator[Stop]:
    stop = Stop()
    yield stop
    stop.request()  # Ends the puller's thread.


@pytest.fixture
def start_puller(free_port: int, stop: Stop) -> Callable[[], VariablePuller]:
    return lambda: VariablePuller(f"localhost:{free_port}", INTERVAL_S, stop)


@pytest.fixture
def poll_again(calls: Calls, eventually: Eventually) -> Callable[[], None]:
    """Returns once the puller has polled twice more: everything before is done by then."""

    def poll_again() -> None:
        wanted = calls.polls + 2
        eventually(lambda: calls.polls >= wanted)

    return poll_again


def test_puller_pulls_each_version_once(
    container: VariableContainer,
    start_puller: Callable[[], VariablePuller],
    calls: Calls,
    poll_again: Callable[[], None],
    eventually: Eventually,
) -> None:
    puller = start_puller()
    poll_again()
    assert (calls.pulls, puller.train_step, puller.take()) == (0, -1, None)
    for pulls, train_step in enumerate((0, 20, 40), start=1):
        container.push(version(train_step))
        eventually(lambda train_step=train_step: puller.train_step == train_step)
        poll_again()
        assert calls.pulls == pulls
        taken = puller.take()
        assert taken is not None
        assert_equals_version(taken, train_step)
        assert puller.take() is None


def test_the_first_version_does_not_wait_for_a_long_interval(
    container: VariableContainer, free_port: int, stop: Stop, eventually: Eventually
) -> None:
    puller = VariablePuller(f"localhost:{free_port}", 3_600.0, stop)
    container.push(version(0))
    eventually(lambda: puller.train_step == 0)


def test_puller_returns_only_the_newest_of_several_versions(
    container: VariableContainer, start_puller: Callable[[], VariablePuller], eventually: Eventually
) -> None:
    puller = start_puller()
    for train_step in range(5):
        container.push(version(train_step))
    eventually(lambda: puller.train_step == 4)
    taken = puller.take()
    assert taken is not None
    assert taken.train_step == 4


def test_puller_reports_the_age_of_its_version(
    container: VariableContainer,
    start_puller: Callable[[], VariablePuller],
    poll_again: Callable[[], None],
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 100.0
    monkeypatch.setattr(puller_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    container.push(version(1))
    puller = start_puller()
    eventually(lambda: puller.take() is not None)
    now_s += 2.0
    container.push(version(2))
    eventually(lambda: puller.train_step == 2)
    poll_again()
    now_s += 3.0
    assert puller.age_s == 5.0  # The actor still acts with version 1: it may wait for the learner.
    assert puller.take() is not None
    assert puller.age_s == 3.0


def test_puller_ends_at_a_stop(
    container: VariableContainer,
    start_puller: Callable[[], VariablePuller],
    stop: Stop,
    eventually: Eventually,
) -> None:
    before = set(threading.enumerate())
    start_puller()
    (thread,) = set(threading.enumerate()) - before
    stop.request()
    eventually(lambda: not thread.is_alive())


def test_puller_survives_a_late_and_a_restarted_server(
    server: Server,
    start_puller: Callable[[], VariablePuller],
    monkeypatch: pytest.MonkeyPatch,
    calls: Calls,
    poll_again: Callable[[], None],
    eventually: Eventually,
) -> None:
    monkeypatch.setattr(puller_module, "_TIMEOUT_S", 1)
    puller = start_puller()
    eventually(lambda: calls.polls >= 1)
    assert puller.take() is None
    assert puller.train_step == -1
    server.start().push(version(20))
    eventually(lambda: puller.train_step == 20)
    assert puller.take() is not None
    poll_again()  # It is not in the middle of a pull any more, which would never end.
    server.stop()
    poll_again()
    pulls = calls.pulls
    container = server.start()
    poll_again()  # There is nothing to pull, and it does not try to.
    assert calls.pulls == pulls
    assert puller.take() is None
    container.push(version(40))  # The first version there, as the one before was the first there.
    eventually(lambda: puller.train_step == 40)
    taken = puller.take()
    assert taken is not None
    assert_equals_version(taken, 40)


@pytest.mark.parametrize("look", [VariablePuller.take, lambda puller: puller.train_step])
def test_an_error_while_pulling_is_raised_where_the_variables_are_used(
    look: Callable[[VariablePuller], object],
    start_puller: Callable[[], VariablePuller],
    monkeypatch: pytest.MonkeyPatch,
    eventually: Eventually,
) -> None:
    def broken(self: VariableContainer, timeout_s: int) -> ContainerStatus:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(VariableContainer, "status", broken)
    puller = start_puller()

    def raises() -> bool:
        try:
            look(puller)
        except OSError as error:
            return "on fire" in str(error)
        return False

    eventually(raises)


def test_puller_accepts_an_earlier_train_step_only_from_a_later_learner(
    server: Server,
    container: VariableContainer,
    start_puller: Callable[[], VariablePuller],
    poll_again: Callable[[], None],
    eventually: Eventually,
) -> None:
    container.push(version(20))
    puller = start_puller()
    eventually(lambda: puller.train_step == 20)
    server.stop()
    container = server.start()  # As if from a checkpoint that is older.
    for older in (5, 15):
        container.push(version(older))
    poll_again()
    poll_again()
    assert puller.train_step == 20
    container.push(version(10, generation=1))
    eventually(lambda: puller.train_step == 10)
