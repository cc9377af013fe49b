"""A collect actor on another node, without Ray: its files there, and the data that reaches the run."""

import pickle
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from actorlearner.network.certificate import make_certificate
from actorlearner.on_ray import collect_actor, ray_child
from actorlearner.on_ray.collect_actor import CollectActor, CollectSettings, Report
from actorlearner.on_ray.ray_child import RayChild
from actorlearner.records.events import DIED, read_events
from actorlearner.records.notify import NOTIFY_VARIABLE
from actorlearner.records.run_directory import RunDirectory
from tests.support.full_disk import fill, small_disk

_NAME = "collect-actor-0"
_LOG = f"logs/{_NAME}.log"

_ROLE = f"""
import os, signal
print("acts", flush=True)
os.write(int(os.environ["{NOTIFY_VARIABLE}"]), b'{{"state": "ready", "message": ""}}\\n')
signal.pause()
"""

Eventually = Callable[..., None]


def _report(*, exit_code: int | None = None, heartbeat: bytes = b"", log: bytes = b"") -> Report:
    added = {_LOG: log} if log else {}
    return Report(exit_code, 7, True, "", "", True, [], added, heartbeat)


class Node:
    """Replaces Ray: the actor answers each poll with the next report."""

    def __init__(self) -> None:
        self.reports: list[Report | RayError] = []
        self.started: list[tuple[object, ...]] = []
        self._actor = SimpleNamespace(poll=SimpleNamespace(remote=lambda: len(self.reports)))

    def remote(self, actor: type) -> SimpleNamespace:
        def start(*arguments: object) -> SimpleNamespace:
            self.started.append(arguments)
            return self._actor

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=start))

    def wait(self, polls: list[int], timeout: float | None) -> tuple[list[int], list[int]]:
        return [each for each in polls if each < len(self.reports)], []

    def get(self, poll: int) -> Report:
        if isinstance(report := self.reports[poll], Exception):
            raise report
        return report

    def kill(self, actor: object) -> None:
        """No-op."""


@pytest.fixture(name="node")
def _node(monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node()
    monkeypatch.setattr(ray_child, "ray", node)
    return node


@pytest.fixture(name="settings")
def _settings() -> CollectSettings:
    return CollectSettings("seed: 7\n", make_certificate(), "localhost:1", "")


def test_data_that_does_not_fit_on_a_full_disk_is_written_later(
    tmp_path: Path, node: Node, settings: CollectSettings
) -> None:
    with small_disk(tmp_path, mebibytes=1) as disk:
        directory = RunDirectory(disk)
        directory.heartbeats.mkdir()
        child = RayChild(_NAME, 0, settings, directory)
        filler = fill(disk)
        for line in (b"one\n", b"two\n"):
            node.reports.append(_report(log=line, heartbeat=b"a heartbeat"))
            child.receive()
        assert child.ready
        assert child.exit_code is None
        filler.unlink()
        node.reports.append(_report(log=b"three\n", heartbeat=b"the next"))
        child.receive()
        assert (disk / _LOG).read_bytes() == b"one\ntwo\nthree\n"
        assert directory.heartbeat(_NAME).read_bytes() == b"the next"
        node.reports.append(_report(exit_code=0, log=b"four\n"))
        child.receive()
        assert child.exit_code == 0
        assert (disk / _LOG).read_bytes().endswith(b"\nfour\n")


def test_errors_other_than_a_full_disk_are_raised(
    tmp_path: Path, node: Node, settings: CollectSettings
) -> None:
    directory = RunDirectory(tmp_path)
    child = RayChild(_NAME, 0, settings, directory)
    directory.heartbeat(_NAME).mkdir(parents=True)
    node.reports.append(_report(heartbeat=b"a heartbeat"))
    with pytest.raises(IsADirectoryError):
        child.receive()


_NOT_INSTALLED = RayTaskError(
    "__init__", "Traceback\nModuleNotFoundError: No module named 'x'", ImportError()
)


@pytest.mark.parametrize(
    ("error", "reason", "recorded"),
    [
        (ActorDiedError(), "its node or its Ray actor is gone", False),
        (ActorDiedError(cause=_NOT_INSTALLED), "ModuleNotFoundError: No module named 'x'", True),
    ],
)
def test_a_death_on_the_node_has_its_reason(
    error: ActorDiedError, reason: str, recorded: bool, tmp_path: Path, node: Node, settings: CollectSettings
) -> None:
    """The supervisor records only deaths without an error."""
    directory = RunDirectory(tmp_path)
    child = RayChild(_NAME, 0, settings, directory)
    node.reports.append(pickle.loads(pickle.dumps(error)))
    child.receive()
    assert (child.exit_code, child.reason) == (-signal.SIGKILL, reason)
    events = [(each["role"], each["event"], each["text"]) for each in read_events(directory.events)]
    assert events == ([(_NAME, DIED, reason)] if recorded else [])
    assert bool(child.error) == recorded


@pytest.mark.parametrize(("left", "expected"), [(b"a heartbeat", b"a heartbeat"), (b"", b"")])
def test_a_restarted_actor_gets_the_heartbeat_of_a_dead_one(
    left: bytes, expected: bytes, tmp_path: Path, node: Node, settings: CollectSettings
) -> None:
    """The role counts its restarts by it. After a normal end, there is none."""
    directory = RunDirectory(tmp_path)
    child = RayChild(_NAME, 0, settings, directory)
    for report in (_report(heartbeat=b"an earlier one"), _report(exit_code=-9, heartbeat=left)):
        node.reports.append(report)
        child.receive()
    RayChild(_NAME, 0, settings, directory)
    assert [arguments[-1] for arguments in node.started] == [b"", expected]


def test_a_role_finds_the_heartbeat_of_the_one_before(
    tmp_path: Path, settings: CollectSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(collect_actor, "module_command", lambda *_: [sys.executable, "-c", _ROLE])
    actor = CollectActor(_NAME, 0, settings, b"", b"a heartbeat")
    actor._child.kill()
    (left,) = tmp_path.glob(f"*/run/health/{_NAME}.json")
    assert left.read_bytes() == b"a heartbeat"


@pytest.fixture(name="actor")
def _actor(
    tmp_path: Path, settings: CollectSettings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CollectActor]:
    """Runs a process that is ready at once; all of the node's files are in tmp_path."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(collect_actor, "_POLL_S", 0.01)
    monkeypatch.setattr(collect_actor, "module_command", lambda *_: [sys.executable, "-c", _ROLE])
    actor = CollectActor(_NAME, 0, settings, b"", b"")
    yield actor
    actor._child.kill()


def test_the_key_is_removed_once_its_connections_are_open(
    actor: CollectActor, tmp_path: Path, eventually: Eventually
) -> None:
    assert [path.stat().st_mode & 0o777 for path in tmp_path.rglob("run.pem")] == [0o600]
    eventually(lambda: actor.poll().ready)
    assert list(tmp_path.rglob("run.pem")) == []
    assert not actor.poll().exit_code  # It needs no key any more.


def test_an_ended_process_leaves_nothing_on_its_node(
    actor: CollectActor, tmp_path: Path, eventually: Eventually
) -> None:
    reports: list[Report] = []

    def poll() -> Report:
        reports.append(actor.poll())
        return reports[-1]

    eventually(lambda: poll().ready)
    assert list(tmp_path.iterdir())
    actor.send(signal.SIGTERM)
    eventually(lambda: poll().exit_code is not None)
    assert reports[-1].exit_code == -signal.SIGTERM
    assert b"".join(report.added.get(_LOG, b"") for report in reports) == b"acts\n"
    assert list(tmp_path.iterdir()) == []
