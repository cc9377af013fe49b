"""The real image and compose files: training, scaling, restarts, refused strangers, and clean removal."""

import ipaddress
import json
import os
import re
import signal
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from actorlearner.network.certificate import make_certificate, write_certificate
from tests.support import compose, knock
from tests.support.compose import Project
from tests.support.containers import Container, knocks_of_a_stranger, run
from tests.support.ports import unused_port

pytestmark = [pytest.mark.container, pytest.mark.timeout(1500)]


_PORT = 8008
_USER = 10001  # Of launch/Dockerfile.


@pytest.fixture(name="published")
def _published() -> str:
    """An address and port of this machine that containers can reach, as they do another machine's."""
    [bridge] = json.loads(run("docker", "network", "inspect", "bridge"))
    addresses = bridge["IPAM"]["Config"][0]
    # A new engine reports only the subnet; its bridge has the first address of it.
    address = addresses.get("Gateway") or next(ipaddress.ip_network(addresses["Subnet"]).hosts())
    return f"{address}:{unused_port()}"


@pytest.fixture(name="project")
def _project(image: str, published: str) -> Iterator[Project]:
    settings = compose.endless_pendulum(image) | {"ACTORLEARNER_PUBLISH": published}
    with compose.project(settings, compose.FILE) as project:
        yield project


@pytest.fixture(name="elsewhere")
def _elsewhere(image: str, published: str, tmp_path: Path) -> Iterator[Project]:
    """Collect actors of another machine, which has the file run.pem."""
    settings = compose.endless_pendulum(image) | {
        "ACTORLEARNER_REPLAY": published,
        "ACTORLEARNER_CERTIFICATE": str(tmp_path / "run.pem"),
        "ACTORLEARNER_FIRST_INDEX": "100",
    }
    with compose.project(settings, compose.ACTORS_FILE) as project:
        yield project


def _indices(actors: Sequence[Container]) -> list[str]:
    """Which collect actors have taken env steps, one for each container."""
    return sorted(name for actor in actors for name in actor.execute("ls", "/run_dir/metrics").split())


def _kill(container: Container) -> None:
    """Kills it as the kernel's OOM killer does: the engine restarts no container that it killed itself."""
    os.kill(int(container.state["State"]["Pid"]), signal.SIGKILL)


def _started_again(container: Container) -> bool:
    state = container.state
    return bool(state["RestartCount"] == 1 and state["State"]["Running"])


def test_the_containers_of_a_run(
    image: str, project: Project, elsewhere: Project, published: str, tmp_path: Path
) -> None:
    project.compose("up", "-d", "--scale", "collect-actor=2")
    server, learner = project.container("replay-server"), project.container("learner")
    assert server.health == "healthy"  # The other containers depend on it.
    project.train_on(learner)
    two = project.containers("collect-actor")
    project.wait(lambda: _indices(two) == ["collect-0.jsonl", "collect-1.jsonl"], "two indices")
    _look_at_the_image(server)
    board = _look_at_the_ports(project, published)
    certificate = _copy_certificate(server, tmp_path / "run.pem")
    _knock(image, server, published, tmp_path)

    elsewhere.compose("up", "-d")
    other = elsewhere.container("collect-actor")
    elsewhere.wait(lambda: other.last_record("collect-100").get("policy_train_step", 0) > 0, "policies there")
    elsewhere.compose("down")

    project.compose("up", "-d", "--no-recreate", "--scale", "collect-actor=4")
    actors = project.containers("collect-actor")
    four = [f"collect-{i}.jsonl" for i in range(4)]
    project.wait(lambda: _indices(actors) == four, "four actors with an index each")

    assert _copy_certificate(server, tmp_path / "again.pem") == certificate  # `up` makes no other.

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
    # It was restored from its last checkpoint; from an empty table it would not be that far yet.
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


def _look_at_the_ports(project: Project, published: str) -> str:
    """There are two: the replay server's, and TensorBoard's on the loopback interface, which is returned."""
    ports = {
        service: [f"{port['HostIp']}:{port['HostPort']}" for port in _ports(container)]
        for service in ("replay-server", "collect-actor", "eval-actor", "learner", "tensorboard")
        for container in project.containers(service)
    }
    assert ports.pop("replay-server") == [published]
    [board] = ports.pop("tensorboard")
    assert board.startswith("127.0.0.1:")
    assert not any(ports.values())
    return f"http://{board}"


def _ports(container: Container) -> list[dict[str, str]]:
    """The ports of this machine that lead to a container."""
    return [port for ports in container.state["NetworkSettings"]["Ports"].values() for port in ports or ()]


def _copy_certificate(server: Container, file: Path) -> bytes:
    """Copies the certificate as documented."""
    run("docker", "cp", f"{server.id}:/certificate/run.pem", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    os.chown(file, _USER, _USER)
    return file.read_bytes()


def _knock(image: str, server: Container, published: str, certificates: Path) -> None:
    """Only holders of the run's certificate get in, on this machine and in the network of the containers."""
    write_certificate(certificates / "foreign.pem", make_certificate())
    host, _, port = published.rpartition(":")
    here = (host, int(port))
    assert knock.stock(*here) == "refused"
    assert knock.tls(*here, file=str(certificates / "run.pem")) == "served"
    assert knock.tls(*here) != "served"
    assert knock.tls(*here, file=str(certificates / "foreign.pem")) != "served"

    [(network, endpoint)] = server.state["NetworkSettings"]["Networks"].items()
    there = ("replay-server", _PORT)
    knocks = [
        ("tls", *there, "/folder/run.pem"),
        ("tls", *there),
        ("tls", *there, "/folder/foreign.pem"),
        ("stock", *there),
        ("scan", "replay-server"),
    ]
    held, *refused, stock, ports = knocks_of_a_stranger(image, network, certificates, *knocks)
    assert (held, stock, ports) == ("served", "refused", [_PORT])
    assert "served" not in refused
    for reason in ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "CERTIFICATE_VERIFY_FAILED"):
        assert f"without the run's certificate: {reason}" in server.log

    # Reverb itself, which the scan did not find; in a private network, it is not even found from here.
    [hidden] = re.findall(r"serving run \w+ on port (\d+)", server.log)
    script = Path(knock.__file__).read_text()
    inside = server.execute("python", "-c", script, json.dumps([("plain", "localhost", int(hidden))]))
    is_private = "a private network is refused" not in server.log
    assert json.loads(inside) == ["refused" if is_private else "served"]
    assert knock.stock(endpoint["IPAddress"], int(hidden)) == "refused"


def _runs(board: str) -> set[str]:
    """The runs that TensorBoard shows."""
    with urllib.request.urlopen(f"{board}/data/runs", timeout=30) as answer:
        return set(json.load(answer))


def test_a_refused_configuration_is_not_retried(image: str) -> None:
    settings = compose.endless_pendulum(image) | {"ACTORLEARNER_CONFIG": "no_such_file"}
    with compose.project(settings, compose.FILE) as project:
        project.compose("up", "-d", "replay-server")
        server = project.container("replay-server")
        assert [port["HostIp"] for port in _ports(server)] == ["127.0.0.1"]  # Without ACTORLEARNER_PUBLISH.
        project.wait(lambda: "waiting to be stopped" in server.log, "the refusal")
        assert "actorlearner: error: no_such_file: no such file (--config)" in server.log
        assert server.state["State"]["Running"]
        project.compose("stop")
        assert (server.state["RestartCount"], server.state["State"]["ExitCode"]) == (0, 2)
