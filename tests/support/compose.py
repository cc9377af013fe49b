"""The containers of the compose file, as a person with a terminal has them."""

import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.containers import ENDLESS_PENDULUM, Container, Containers, run
from tests.support.ports import unused_port
from tests.support.processes import REPOSITORY

FILE = REPOSITORY / "launch" / "docker-compose.yml"
ACTORS_FILE = REPOSITORY / "launch" / "docker-compose.actors.yml"
_BUILD_S = 900.0


def endless_pendulum(image: str) -> dict[str, str]:
    """What the compose files read from the environment, for a run that is small and has no end."""
    return {
        "ACTORLEARNER_IMAGE": image,
        "ACTORLEARNER_CONFIG": "sac_pendulum",
        "ACTORLEARNER_ARGS": f"--set {' '.join(ENDLESS_PENDULUM)}",
        "ACTORLEARNER_BOARD_PORT": str(unused_port()),
    }


def missing() -> str:
    """The missing requirements for containers on this machine; empty if there are none."""
    if not shutil.which("docker"):
        return "no docker"
    if subprocess.run(["docker", "info"], capture_output=True, timeout=60, check=False).returncode:
        return "no container engine runs"
    return "" if command() else "neither docker-compose nor docker compose"


def command() -> list[str]:
    """The command of compose on this machine; empty without compose."""
    for name in (["docker-compose"], ["docker", "compose"]):
        if shutil.which(name[0]):
            version = subprocess.run([*name, "version"], capture_output=True, timeout=60, check=False)
            if version.returncode == 0:
                return name
    return []


def build(image: str, directory: Path) -> None:
    """Builds the image as `up` does, with the packages of the index that pip has here.

    Args:
      image: what to call it.
      directory: an empty one, for a file.
    """
    index = subprocess.run(["pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    environment = {"ACTORLEARNER_IMAGE": image}
    if index.returncode == 0:
        environment["PIP_INDEX_URL"] = index.stdout.strip()
    # The index may be on this machine.
    network = directory / "network.yml"
    network.write_text("services: {replay-server: {build: {network: host}}}\n", encoding="utf-8")
    files = ("-f", str(FILE), "-f", str(network))
    run(*command(), *files, "build", "replay-server", timeout_s=_BUILD_S, environment=environment)


class Project(Containers):
    """The containers of one run, or of the part of it that one machine has."""

    def __init__(self, environment: Mapping[str, str], file: Path) -> None:
        self.name = f"actorlearner-{uuid.uuid4().hex[:8]}"
        self._environment = environment
        self._file = str(file)

    def compose(self, *arguments: str) -> str:
        return run(*command(), "-p", self.name, "-f", self._file, *arguments, environment=self._environment)

    def containers(self, service: str) -> list[Container]:
        return [Container(identifier) for identifier in self.compose("ps", "-q", service).split()]

    def container(self, service: str) -> Container:
        [container] = self.containers(service)
        return container

    def describe(self) -> str:
        return self.compose("ps") + self.compose("logs", "--tail", "10")

    def left(self) -> list[str]:
        """The names of this project's existing containers, networks and volumes."""
        label = f"label=com.docker.compose.project={self.name}"
        kinds = (["ps", "-a"], ["network", "ls"], ["volume", "ls"])
        return [name for kind in kinds for name in run("docker", *kind, "-q", "--filter", label).split()]


@contextmanager
def project(environment: Mapping[str, str], file: Path) -> Iterator[Project]:
    """A project of which nothing is left afterwards."""
    made = Project(environment, file)
    try:
        yield made
    finally:
        made.compose("down", "--volumes", "--timeout", "0")
