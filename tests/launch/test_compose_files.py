"""The compose files as compose resolves them: needs compose, but no engine."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import compose
from tests.support.compose import ACTORS_FILE, FILE
from tests.support.containers import run

Services = dict[str, dict[str, Any]]

pytestmark = pytest.mark.skipif(not compose.command(), reason="needs docker-compose or docker compose")

_ROLES = {"replay-server", "collect-actor", "eval-actor", "learner"}
_MACHINE = {
    "ACTORLEARNER_REPLAY": "first.host:8443",
    "ACTORLEARNER_CERTIFICATE": "/etc/run.pem",
    "ACTORLEARNER_FIRST_INDEX": "100",
}


def _services(file: Path, **environment: str) -> Services:
    text = run(*compose.command(), "-f", str(file), "config", environment=_MACHINE | environment)
    return dict(yaml.safe_load(text)["services"])


@pytest.fixture(scope="module")
def here() -> Services:
    """The services of a run."""
    return _services(FILE)


@pytest.fixture(scope="module")
def there() -> Services:
    """The services of a machine that has collect actors only."""
    return _services(ACTORS_FILE)


def _mounts(service: dict[str, Any]) -> list[dict[str, Any]]:
    """The mounts of a service; docker-compose writes named volumes as SOURCE:TARGET:MODE."""
    mounts = []
    for mount in service.get("volumes", ()):
        if isinstance(mount, str):
            source, target, mode = mount.split(":")
            mount = {"source": source, "target": target, "read_only": mode == "ro"}
        mounts.append({"read_only": False} | mount)
    return mounts


def test_no_container_has_rights_or_memory_without_end(here: Services, there: Services) -> None:
    assert (set(here), set(there)) == (_ROLES | {"certificate", "tensorboard"}, {"collect-actor"})
    for name, service in (*here.items(), *there.items()):
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        # A certificate that cannot be made ends `up` with an error.
        assert service["restart"] == ("no" if name == "certificate" else "on-failure")
        assert service["mem_limit"]
        assert "user" not in service  # The image's, which is not root.


def test_no_role_is_tried_for_ever_with_a_configuration_that_it_refuses(
    here: Services, there: Services
) -> None:
    for service in (*(here[role] for role in _ROLES), *there.values()):
        assert service["entrypoint"][:2] == ["python", "/opt/actorlearner/hold.py"]
        assert service["entrypoint"][2] == "python"


def test_every_role_has_the_certificate_and_only_its_maker_can_write_it(
    here: Services, there: Services
) -> None:
    held = {
        name: mount["read_only"]
        for name, service in here.items()
        for mount in _mounts(service)
        if mount["target"] == "/certificate"
    }
    assert held == dict.fromkeys(_ROLES, True) | {"certificate": False}
    for role in _ROLES:
        assert "--tls /certificate/run.pem" in " ".join(_words(here[role]["command"]))
    made = {"certificate": {"condition": "service_completed_successfully"}}
    assert here["replay-server"]["depends_on"] == made  # All other roles depend on the replay server.

    [actor] = there.values()
    [mount] = _mounts(actor)
    assert (mount["source"], mount["target"], mount["read_only"]) == (
        "/etc/run.pem", "/certificate/run.pem", True,
    )  # fmt: skip
    words = _words(actor["command"])
    assert words[3:7] == ["--replay_address", "first.host:8443", "--tls", "/certificate/run.pem"]


def _words(command: str | list[str]) -> list[str]:
    """A command, which docker-compose writes as text."""
    return command.split() if isinstance(command, str) else command


def test_ports_are_on_the_loopback_interface_unless_published(here: Services, there: Services) -> None:
    published = {name: str(service["ports"]) for name, service in here.items() if "ports" in service}
    assert set(published) == {"replay-server", "tensorboard"}
    assert all("127.0.0.1" in ports for ports in published.values())
    elsewhere = _services(FILE, ACTORLEARNER_PUBLISH="8443")
    assert "127.0.0.1" not in str(elsewhere["replay-server"]["ports"])
    assert "8443" in str(elsewhere["replay-server"]["ports"])
    assert "ports" not in there["collect-actor"]


@pytest.mark.parametrize("missing", _MACHINE)
def test_actors_elsewhere_need_an_address_a_certificate_and_an_index(missing: str) -> None:
    environment = {key: value for key, value in (os.environ | _MACHINE).items() if key != missing}
    done = subprocess.run(
        [*compose.command(), "-f", str(ACTORS_FILE), "config"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "has to be" in done.stderr
    assert missing in done.stderr
