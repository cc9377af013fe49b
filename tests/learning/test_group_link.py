"""Learners of a group find each other, and each hears of the others' ends."""

import concurrent.futures
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from actorlearner.errors import ConfigurationError, RunError
from actorlearner.learning import group_gathering, group_link
from actorlearner.learning.cluster import Cluster
from actorlearner.learning.group_link import GroupLink
from actorlearner.process.stop import Stop
from tests.support.ports import unused_port

PATIENCE_S = 60.0
Eventually = Callable[..., None]


class Learner:
    """One learner's end, and the reports that it received."""

    def __init__(self, addresses: tuple[str, ...], index: int, fingerprint: str) -> None:
        self.stop = Stop()
        self.failed: list[str] = []
        self.link = GroupLink(Cluster(addresses, index), fingerprint, self.stop, self.failed.append)

    def die(self) -> None:
        """As the kernel closes what a killed process had open."""
        self.link._closed.set()
        self.link._thread.join()
        for peer in self.link._peers:
            peer.connection.close()


class Group:
    """Learners in the threads of this process."""

    def __init__(self, size: int) -> None:
        self.addresses = tuple(f"localhost:{unused_port()}" for _ in range(size))
        self.learners: list[Learner] = []
        self._threads = concurrent.futures.ThreadPoolExecutor()

    def learner(self, index: int, fingerprint: str = "same", addresses: tuple[str, ...] = ()) -> Learner:
        self.learners.append(Learner(addresses or self.addresses, index, fingerprint))
        return self.learners[-1]

    def gather(self, learner: Learner) -> "concurrent.futures.Future[bool]":
        return self._threads.submit(learner.link.gather)

    def gathered(self) -> list[Learner]:
        """All of them, which have found and watch each other."""
        learners = [self.learner(index) for index in range(len(self.addresses))]
        chief, *others = [self.gather(learner) for learner in learners]
        assert chief.result(PATIENCE_S)
        learners[0].link.begin()
        for learner, gathering in zip(learners[1:], others, strict=True):
            assert gathering.result(PATIENCE_S)
            learner.link.begin()
        return learners

    def end(self) -> None:
        for learner in self.learners:
            learner.stop.request()
        self._threads.shutdown()
        closing = [threading.Thread(target=learner.link.close) for learner in self.learners]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()


@pytest.fixture(name="three")
def _three(monkeypatch: pytest.MonkeyPatch) -> Iterator[Group]:
    monkeypatch.setattr(group_link, "GRACE_S", 0.2)
    group = Group(3)
    yield group
    group.end()


def test_no_learner_continues_before_all_have_joined(three: Group, eventually: Eventually) -> None:
    chief, first, last = (three.learner(index) for index in range(3))
    gathering = [three.gather(first), three.gather(chief)]
    assert not concurrent.futures.wait(gathering, timeout=0.5).done
    gathering.append(three.gather(last))
    assert gathering[1].result(PATIENCE_S)
    assert not concurrent.futures.wait([gathering[0], gathering[2]], timeout=0.5).done  # No server yet.
    chief.link.begin()
    assert gathering[0].result(PATIENCE_S)
    assert gathering[2].result(PATIENCE_S)
    assert chief.link.lost is None


def test_the_chiefs_port_is_free_after_gathering(three: Group) -> None:
    """TensorFlow listens on it next, with the connections still open."""
    three.gathered()
    port = int(three.addresses[0].rpartition(":")[2])
    with socket.create_server(("", port)) as server:
        server.listen()


def test_a_learner_restarted_during_gathering_joins(three: Group) -> None:
    chief, before, again, last = (three.learner(index) for index in (0, 1, 1, 2))
    gathering = three.gather(chief)
    left = three.gather(before)
    before.stop.request()
    assert left.result(PATIENCE_S) is False
    others = [three.gather(again), three.gather(last)]
    assert gathering.result(PATIENCE_S)
    chief.link.begin()
    for other in others:
        assert other.result(PATIENCE_S)


def test_connections_of_other_programs_are_ignored(three: Group, eventually: Eventually) -> None:
    chief, first, last = (three.learner(index) for index in range(3))
    gathering = three.gather(chief)
    strangers: list[socket.socket] = []
    port = int(three.addresses[0].rpartition(":")[2])

    def connected() -> bool:
        try:
            strangers.append(socket.create_connection(("localhost", port)))
        except ConnectionRefusedError:
            return False
        return True

    for greeting in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"index": 0}\n',
        b'{"index": "1"}\n',
        b"[]\n",
        b"\xff\n",
    ):
        eventually(connected)
        strangers[-1].sendall(greeting)
    others = [three.gather(first), three.gather(last)]
    assert gathering.result(PATIENCE_S)
    chief.link.begin()
    assert all(other.result(PATIENCE_S) for other in others)
    for stranger in strangers:
        stranger.close()


def test_a_learner_of_another_configuration_or_group_is_refused(three: Group) -> None:
    chief = three.gather(three.learner(0))
    for key, wrong in (
        ("--config: the chief has another configuration", three.learner(1, fingerprint="other")),
        (
            "learn.strategy: the chief has another TF_CONFIG",
            three.learner(1, addresses=(three.addresses[0], "elsewhere:1", "elsewhere:2")),
        ),
    ):
        with pytest.raises(ConfigurationError) as refusal:
            three.gather(wrong).result(PATIENCE_S)
        assert refusal.value.problems[0].startswith(key)
    assert not chief.done()


def test_waiting_ends_at_the_deadline_and_names_the_missing(
    three: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_gathering, "GATHER_DEADLINE_S", 1.0)
    chief = three.gather(three.learner(0))
    other = three.gather(three.learner(2))
    with pytest.raises(RunError, match=rf"gave up waiting for learner-1 at {three.addresses[1]} to join"):
        chief.result(PATIENCE_S)
    with pytest.raises(RunError, match=rf"gave up waiting for the chief, learner at {three.addresses[0]}"):
        other.result(PATIENCE_S)


def test_a_failure_of_the_chief_before_training_reaches_the_others(three: Group) -> None:
    chief, first, last = (three.learner(index) for index in range(3))
    others = [three.gather(first), three.gather(last)]
    assert three.gather(chief).result(PATIENCE_S)
    chief.link.close("TensorFlow cannot listen")
    for other in others:
        with pytest.raises(RunError, match=r"^learner failed: TensorFlow cannot listen$"):
            other.result(PATIENCE_S)


def test_a_stop_that_arrives_together_with_the_start_is_not_lost(three: Group) -> None:
    """A chief that is stopped while its TensorFlow server starts reports it just after the start."""
    learner = three.learner(1)
    with socket.create_server(("", int(three.addresses[0].rpartition(":")[2]))) as chief:
        chief.settimeout(PATIENCE_S)
        gathering = three.gather(learner)
        connection, _ = chief.accept()
        with connection:
            connection.sendall(b'{"go": true}\n{"alive": true}\n{"stop": "learner"}\n')
            assert gathering.result(PATIENCE_S)
    assert learner.stop.requested
    assert learner.stop.exit_code == 143


def test_a_chief_whose_port_is_taken_raises_a_run_error(three: Group) -> None:
    with (
        socket.create_server(("", int(three.addresses[0].rpartition(":")[2]))),
        pytest.raises(RunError, match="the chief's in TF_CONFIG, cannot be listened on"),
    ):
        three.learner(0).link.gather()


@pytest.mark.parametrize("dead", [0, 1])
def test_the_peers_report_which_learner_died(three: Group, dead: int, eventually: Eventually) -> None:
    learners = three.gathered()
    learners[dead].die()
    for learner in learners:
        if learner is not learners[dead]:
            eventually(lambda learner=learner: learner.failed, timeout_s=PATIENCE_S)
            (why,) = learner.failed
            name = "learner" if dead == 0 else "learner-1"
            lost = f"{name} at {three.addresses[dead]} was lost (its connection was closed): restart all"
            assert why.startswith(lost)
            assert learner.link.wait_for_loss(0.0) == why
            assert not learner.stop.requested


def test_a_learner_without_heartbeats_counts_as_lost(
    three: Group, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """As one whose host has lost its power, or that has stopped (SIGSTOP)."""
    monkeypatch.setattr(group_link, "SILENCE_S", 5.0)
    monkeypatch.setattr(group_link, "_HEARTBEAT_INTERVAL_S", 0.1)
    learners = three.gathered()
    learners[2].link._closed.set()  # It neither speaks nor listens any more.
    for learner in learners[:2]:
        eventually(lambda learner=learner: learner.failed, timeout_s=PATIENCE_S)
        assert f"learner-2 at {three.addresses[2]} was lost (no heartbeat for " in learner.failed[0]


def test_a_failure_is_reported_and_a_role_that_ends_by_itself_is_not_killed(
    three: Group, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_link, "GRACE_S", PATIENCE_S)
    learners = three.gathered()
    learners[1].link.close("the environment is broken")
    for learner in (learners[0], learners[2]):
        assert learner.link.wait_for_loss(PATIENCE_S) == "learner-1 failed: the environment is broken"
        learner.link.close()
        assert learner.failed == []


def test_a_stop_of_one_learner_stops_all(
    three: Group, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    learners = three.gathered()
    learners[1].stop.request(signal.SIGINT)
    for learner in learners:
        assert learner.stop.wait(PATIENCE_S)
    assert [learner.stop.exit_code for learner in learners] == [143, 130, 143]
    assert "stopping, because learner-1 was stopped" in caplog.text
    for learner in learners:
        learner.link.close()
    assert all(learner.link.lost is None for learner in learners)


def test_a_stop_just_before_the_end_is_reported_too(three: Group) -> None:
    learners = three.gathered()
    link = learners[2].link
    report = link._report_stop
    link._report_stop = lambda: None if threading.current_thread() is link._thread else report()
    learners[2].stop.request(signal.SIGTERM)
    learners[2].link.close()
    assert learners[0].stop.wait(PATIENCE_S)
    assert learners[1].stop.wait(PATIENCE_S)


def test_a_learner_that_ends_normally_does_not_count_as_lost(three: Group, eventually: Eventually) -> None:
    learners = three.gathered()
    for learner in learners[1:]:
        learner.link.leave()
        assert not learner.link.others_have_left
    eventually(lambda: learners[0].link.others_have_left)
    learners[1].die()
    learners[0].link.close()
    eventually(lambda: learners[2].link.others_have_left)
    assert learners[0].link.lost is None
    assert learners[2].link.lost is None
