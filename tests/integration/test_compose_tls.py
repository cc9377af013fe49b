"""The real image and both compose files: a run trains by TLS, and nobody without a certificate gets in."""

import ipaddress
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import portpicker
import pytest

from tests.support import compose, knock
from tests.support.compose import FILE, TLS_FILE, Container, Project
from tests.support.processes import REPOSITORY

pytestmark = [pytest.mark.container, pytest.mark.timeout(1500)]

_PLAIN, _TLS = 8008, 8443
_NO_CERTIFICATE = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
_OF_ANOTHER_AUTHORITY = "TLSV1_ALERT_UNKNOWN_CA"


def _certificates(folder: Path) -> Path:
    """What the documented command makes."""
    done = compose.run("bash", str(REPOSITORY / "launch" / "certificates.sh"), str(folder))
    assert done.startswith(f"certificates.sh: made {folder}/server and {folder}/client, good until ")
    return folder


def _outside() -> str:
    """An address of this machine that containers can reach, as they do another machine's."""
    [bridge] = json.loads(compose.run("docker", "network", "inspect", "bridge"))
    addresses = bridge["IPAM"]["Config"][0]
    # An engine in its first life tells the subnet alone; its bridge has the first address of it.
    return addresses.get("Gateway") or str(next(ipaddress.ip_network(addresses["Subnet"]).hosts()))


def _from(container: Container, *knocks: Sequence[object]) -> list[str]:
    """What comes of knocks that are made in a container."""
    script = Path(knock.__file__).read_text()
    return list(json.loads(container.execute("python", "-c", script, json.dumps(knocks))))


def test_a_run_behind_tls(image: str, tmp_path: Path) -> None:
    certificates = _certificates(tmp_path / "certificates")
    elsewhere = tmp_path / "elsewhere"  # A machine that has the clients' certificate alone.
    elsewhere.mkdir()
    subprocess.run(["cp", "-a", certificates / "client", elsewhere], check=True)
    address, port = _outside(), portpicker.pick_unused_port()
    here = compose.endless_pendulum(image) | {
        "ACTORLEARNER_CERTIFICATES": str(certificates),
        "ACTORLEARNER_TLS_PUBLISH": f"{address}:{port}",
    }
    there = here | {
        "ACTORLEARNER_CERTIFICATES": str(elsewhere),
        "ACTORLEARNER_REPLAY": f"{address}:{port}",
        "ACTORLEARNER_FIRST_INDEX": "100",
    }
    with (
        compose.project(here, FILE, TLS_FILE) as run,
        compose.project(there, FILE, TLS_FILE) as more,
    ):
        more.compose("up", "-d", "--no-deps", "collect-actor")
        run.compose(
            "up", "-d", "--scale", "collect-actor=0"
        )  # So that what is learnt from comes by the other.
        # While they make their graphs.
        _knock_with_certificates(address, port, certificates, _certificates(tmp_path / "foreign"))
        _look_for_the_plain_port(run, more)
        run.train_on(run.container("learner"))
        actor = more.container("collect-actor")
        more.wait(lambda: actor.last_record("collect-100").get("policy_train_step", 0) > 0, "policies there")
        roles = [run.container(name) for name in ("replay-server", "eval-actor", "learner")]
        assert [role.state["RestartCount"] for role in (*roles, actor)] == [0] * 4
        for project in (run, more):
            project.compose("down", "--volumes")
            assert project.left() == []


def _knock_with_certificates(address: str, port: int, ours: Path, foreign: Path) -> None:
    assert knock.tls(address, port, str(ours / "client")) == "served"
    assert knock.tls(address, port) == _NO_CERTIFICATE
    assert knock.tls(address, port, str(foreign / "client")) == _OF_ANOTHER_AUTHORITY
    assert knock.plain(address, port) != "served"


def _look_for_the_plain_port(run: Project, more: Project) -> None:
    """It is nowhere but on the loopback interface of a container that has no other."""
    server, board = run.container("replay-server"), run.container("tensorboard")
    assert _from(server, ("plain", "localhost", _PLAIN)) == ["served"]
    assert server.execute("ls", "/sys/class/net").split() == ["lo"]
    # One of the network of the actors, with no certificate.
    tries = [("tls", "replay-gate", _TLS), ("plain", "replay-server", _PLAIN)]
    assert _from(board, *tries) == [_NO_CERTIFICATE, "no such host"]
    addresses = [
        network["IPAddress"]
        for project, services in (
            (run, ("replay-gate", "eval-actor", "learner")),
            (more, ("collect-actor",)),
        )
        for service in services
        for network in project.container(service).state["NetworkSettings"]["Networks"].values()
    ]
    assert len(addresses) == 4
    assert {knock.plain(address, _PLAIN) for address in addresses} == {"refused"}
    assert set(_from(board, *(("plain", address, _PLAIN) for address in addresses[:3]))) == {"refused"}
