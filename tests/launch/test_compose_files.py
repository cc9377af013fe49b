"""What compose makes of its files: needs compose, but no engine."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import compose
from tests.support.compose import FILE, TLS_FILE

Services = dict[str, dict[str, Any]]

pytestmark = pytest.mark.skipif(not compose.command(), reason="needs docker-compose or docker compose")


def _merged(**environment: str) -> Services:
    return _config(FILE, TLS_FILE, **environment)


def _config(*files: Path, **environment: str) -> Services:
    text = compose.run(
        *(*compose.command(), *(argument for file in files for argument in ("-f", str(file))), "config"),
        environment={"ACTORLEARNER_CERTIFICATES": "/made"} | environment,
    )
    return dict(yaml.safe_load(text)["services"])


@pytest.fixture(name="services", scope="module")
def _services() -> Services:
    return _merged()


def test_no_container_has_rights_or_memory_without_end(services: Services) -> None:
    assert len(services) == 6
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["restart"] == "on-failure"
        assert service["mem_limit"]
        assert "user" not in service  # The image's, which is not root.


def test_no_role_is_tried_for_ever_with_a_configuration_that_it_refuses(services: Services) -> None:
    roles = ("replay-server", "collect-actor", "eval-actor", "learner")
    plain = _config(FILE)
    for role in roles:
        for service in (plain[role], services[role]):
            assert service["entrypoint"][:2] == ["python", "/opt/actorlearner/hold.py"]
            assert service["entrypoint"][2] == "python"


def test_the_replay_server_has_no_network(services: Services) -> None:
    assert {name for name, service in services.items() if service.get("network_mode") == "none"} == {
        "replay-server"
    }
    assert "ports" not in services["replay-server"]


def test_every_role_has_its_own_certificate_and_nobody_else_has_one(services: Services) -> None:
    held = {
        name: mount["source"]
        for name, service in services.items()
        for mount in service["volumes"]
        if isinstance(mount, dict) and mount["target"] == "/certificates"
    }
    clients = dict.fromkeys(("collect-actor", "eval-actor", "learner"), "/made/client")
    assert held == {"replay-server": "/made/server"} | clients
    for name in held:
        side = "server" if name == "replay-server" else "client"
        assert services[name]["entrypoint"][-2:] == ["/opt/actorlearner/tls.py", side]


def test_tls_is_on_the_loopback_interface_unless_told(services: Services) -> None:
    published = {name: str(service["ports"]) for name, service in services.items() if "ports" in service}
    assert set(published) == {"replay-gate", "tensorboard"}
    assert "127.0.0.1" in published["replay-gate"]
    assert "127.0.0.1" not in str(_merged(ACTORLEARNER_TLS_PUBLISH="8443")["replay-gate"]["ports"])


def test_without_certificates_nothing_is_started() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "ACTORLEARNER_CERTIFICATES"}
    done = subprocess.run(
        [*compose.command(), "-f", str(FILE), "-f", str(TLS_FILE), "config"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "is not set, see launch/docker-compose.tls.yml" in done.stderr
