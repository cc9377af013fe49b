"""The real image and the real compose file: they train, grow, heal, and leave nothing behind."""

import json
import os
import signal
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence

import portpicker
import pytest

from tests.support import compose
from tests.support.compose import Container, Project
from tests.support.processes import TINY_RUN, wait_for

pytestmark = [pytest.mark.container, pytest.mark.timeout(1500)]

_IMAGE = "actorlearner-test"
_PATIENCE_S = 240.0
_SETTINGS = (
    *TINY_RUN,
    "learn.train_steps=1000000",
    "learn.checkpoint_interval=500",
    "replay.checkpoint_interval_s=5",
    "evaluate.interval=1000000",
)


@pytest.fixture(name="project", scope="module")
def _project() -> Iterator[Project]:
    missing = compose.missing()
    if missing:
        pytest.skip(f"containers are not tested: {missing}")
    compose.build(_IMAGE)
    environment = {
        "ACTORLEARNER_IMAGE": _IMAGE,
        "ACTORLEARNER_CONFIG": "sac_pendulum",
        "ACTORLEARNER_ARGS": f"--set {' '.join(_SETTINGS)}",
        "ACTORLEARNER_BOARD_PORT": str(portpicker.pick_unused_port()),
    }
    project = Project(f"actorlearner-{uuid.uuid4().hex[:8]}", environment)
    try:
        yield project
    finally:
        project.compose("down", "--volumes", "--timeout", "0")


def _wait(project: Project, condition: Callable[[], object], what: str) -> None:
    """Waits long: the containers share the machine, and a look at one is a process, too."""
    try:
        wait_for(condition, what, timeout_s=_PATIENCE_S, interval_s=1.0)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{project.describe()}") from None


def _train_on(project: Project, learner: Container) -> None:
    """Waits until training has gone on for a while."""

    def train_step() -> int:
        return int(learner.last_record("learner").get("train_step", 0))

    before = train_step()
    _wait(project, lambda: train_step() > before + 100, "train steps")


def _indices(actors: Sequence[Container]) -> list[str]:
    """Which collect actors have taken env steps, one for each container."""
    return sorted(name for actor in actors for name in actor.execute("ls", "/run_dir/metrics").split())


def _kill(container: Container) -> None:
    """As the kernel does when memory runs out; a kill by the engine would count as a wish to end it."""
    os.kill(int(container.state["State"]["Pid"]), signal.SIGKILL)


def _started_again(container: Container) -> bool:
    state = container.state
    return bool(state["RestartCount"] == 1 and state["State"]["Running"])


def test_the_containers_of_a_run(project: Project) -> None:
    project.compose("up", "-d", "--scale", "collect-actor=2")
    server, learner = project.container("replay-server"), project.container("learner")
    assert server.health == "healthy"  # What the others are started after.
    _train_on(project, learner)
    two = project.containers("collect-actor")
    _wait(project, lambda: _indices(two) == ["collect-0.jsonl", "collect-1.jsonl"], "two indices")
    _look_at_the_image(server)
    board = _look_at_the_ports(project)

    project.compose("up", "-d", "--no-recreate", "--scale", "collect-actor=4")
    actors = project.containers("collect-actor")
    four = [f"collect-{i}.jsonl" for i in range(4)]
    _wait(project, lambda: _indices(actors) == four, "four actors with an index each")

    actor = two[0]
    [metrics] = actor.execute("ls", "/run_dir/metrics").split()
    name = metrics.removesuffix(".jsonl")
    acted = actor.last_record(name)["time"]
    _kill(actor)
    _wait(project, lambda: _started_again(actor), "the actor to be started again")
    _wait(project, lambda: actor.last_record(name).get("time", 0) > acted + 5, "env steps after that")
    assert _indices(actors) == four
    _train_on(project, learner)

    inserted = server.last_record("replay")["inserts"]
    _kill(server)
    _wait(project, lambda: _started_again(server), "the replay server to be started again")
    _wait(project, lambda: server.health == "healthy", "the replay server to be healthy")
    _train_on(project, learner)
    # It has what its last checkpoint had; from nothing it would not be that far yet.
    assert server.last_record("replay")["inserts"] > inserted / 2
    others = [learner, project.container("eval-actor"), *actors]
    _wait(project, lambda: {other.health for other in others} == {"healthy"}, "health")
    assert [other.state["RestartCount"] for other in others if other.id != actor.id] == [0] * 5
    _wait(project, lambda: _runs(board) >= {"learner/learner", "eval/eval"}, "TensorBoard's curves")

    project.compose("stop")
    assert {role.state["State"]["ExitCode"] for role in (server, *others)} == {143}
    project.compose("down", "--volumes")
    assert project.left() == []


def _look_at_the_image(container: Container) -> None:
    assert container.execute("id", "-u").strip() == "10001"
    for compiler in ("cc", "gcc", "g++", "clang", "make"):
        assert container.execute("sh", "-c", f"command -v {compiler}") == ""


def _look_at_the_ports(project: Project) -> str:
    """Only TensorBoard has one, on the loopback interface; returns its address."""
    published = {
        service: [
            port for ports in container.state["NetworkSettings"]["Ports"].values() for port in ports or ()
        ]
        for service in ("replay-server", "collect-actor", "eval-actor", "learner", "tensorboard")
        for container in project.containers(service)
    }
    [board] = published.pop("tensorboard")
    assert board["HostIp"] == "127.0.0.1"
    assert not any(published.values())
    return f"http://127.0.0.1:{board['HostPort']}"


def _runs(board: str) -> set[str]:
    """The runs that TensorBoard shows."""
    with urllib.request.urlopen(f"{board}/data/runs", timeout=30) as answer:
        return set(json.load(answer))
