"""The real image and the real compose file: they train, grow, heal, and leave nothing behind."""

import json
import os
import signal
import urllib.request
from collections.abc import Iterator, Sequence

import pytest

from tests.support import compose
from tests.support.compose import Container, Project

pytestmark = [pytest.mark.container, pytest.mark.timeout(1500)]


@pytest.fixture(name="project", scope="module")
def _project(image: str) -> Iterator[Project]:
    with compose.project(compose.endless_pendulum(image), compose.FILE) as project:
        yield project


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
    project.train_on(learner)
    two = project.containers("collect-actor")
    project.wait(lambda: _indices(two) == ["collect-0.jsonl", "collect-1.jsonl"], "two indices")
    _look_at_the_image(server)
    board = _look_at_the_ports(project)

    project.compose("up", "-d", "--no-recreate", "--scale", "collect-actor=4")
    actors = project.containers("collect-actor")
    four = [f"collect-{i}.jsonl" for i in range(4)]
    project.wait(lambda: _indices(actors) == four, "four actors with an index each")

    actor = two[0]
    [metrics] = actor.execute("ls", "/run_dir/metrics").split()
    name = metrics.removesuffix(".jsonl")
    acted = actor.last_record(name)["time"]
    _kill(actor)
    project.wait(lambda: _started_again(actor), "the actor to be started again")
    project.wait(lambda: actor.last_record(name).get("time", 0) > acted + 5, "env steps after that")
    assert _indices(actors) == four
    project.train_on(learner)

    inserted = server.last_record("replay")["inserts"]
    _kill(server)
    project.wait(lambda: _started_again(server), "the replay server to be started again")
    project.wait(lambda: server.health == "healthy", "the replay server to be healthy")
    project.train_on(learner)
    # It has what its last checkpoint had; from nothing it would not be that far yet.
    assert server.last_record("replay")["inserts"] > inserted / 2
    others = [learner, project.container("eval-actor"), *actors]
    project.wait(lambda: {other.health for other in others} == {"healthy"}, "health")
    assert [other.state["RestartCount"] for other in others if other.id != actor.id] == [0] * 5
    project.wait(lambda: _runs(board) >= {"learner/learner", "eval/eval"}, "TensorBoard's curves")

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


def test_a_configuration_that_is_refused_is_not_tried_again(image: str) -> None:
    settings = compose.endless_pendulum(image) | {"ACTORLEARNER_CONFIG": "no_such_file"}
    with compose.project(settings, compose.FILE) as project:
        project.compose("up", "-d", "--no-deps", "learner")
        learner = project.container("learner")
        project.wait(lambda: "waiting to be stopped" in learner.log, "the refusal")
        assert "actorlearner: error: no_such_file: no such file (--config)" in learner.log
        assert learner.state["State"]["Running"]
        project.compose("stop")
        assert (learner.state["RestartCount"], learner.state["State"]["ExitCode"]) == (0, 2)
