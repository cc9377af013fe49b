"""The containers of the compose file, as a person with a terminal has them."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.support.processes import REPOSITORY

FILE = REPOSITORY / "launch" / "docker-compose.yml"
_COMMAND_S = 300.0
_BUILD_S = 900.0


def run(*command: str, timeout_s: float = _COMMAND_S, environment: Mapping[str, str] | None = None) -> str:
    """Runs a command to its end; returns what it printed, and fails with that if it failed."""
    done = subprocess.run(
        command,
        env=None if environment is None else os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def missing() -> str:
    """What there has to be, and is not, for containers on this machine; empty if nothing is missing."""
    if not shutil.which("docker"):
        return "no docker"
    if subprocess.run(["docker", "info"], capture_output=True, timeout=60, check=False).returncode:
        return "no container engine runs"
    return "" if _compose() else "neither docker-compose nor docker compose"


def _compose() -> list[str]:
    for command in (["docker-compose"], ["docker", "compose"]):
        if shutil.which(command[0]):
            version = subprocess.run([*command, "version"], capture_output=True, timeout=60, check=False)
            if version.returncode == 0:
                return command
    return []


def build(image: str) -> None:
    """Builds the image from this checkout, with the packages of the index that pip has here."""
    index = subprocess.run(["pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    arguments = ["--build-arg", f"PIP_INDEX_URL={index.stdout.strip()}"] if index.returncode == 0 else []
    file = str(REPOSITORY / "launch" / "Dockerfile")
    run(
        *(
            "docker",
            "build",
            "--network",
            "host",
            "--tag",
            image,
            "--file",
            file,
            *arguments,
            str(REPOSITORY),
        ),
        timeout_s=_BUILD_S,
    )


class Container:
    """A container, running or not."""

    def __init__(self, identifier: str) -> None:
        self.id = identifier

    @property
    def state(self) -> dict[str, Any]:
        """What the engine says of it."""
        [state] = json.loads(run("docker", "inspect", self.id))
        return {**state}

    @property
    def health(self) -> str:
        return str(self.state["State"]["Health"]["Status"])

    def execute(self, *command: str) -> str:
        """Runs a command in it; returns nothing if that fails, as it does where there is no container yet."""
        done = subprocess.run(
            ["docker", "exec", self.id, *command], capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout if done.returncode == 0 else ""

    def last_record(self, metrics: str) -> dict[str, Any]:
        """The last whole record of a metrics file; none while there is none."""
        lines = self.execute("tail", "-n", "2", f"/run_dir/metrics/{metrics}.jsonl").split("\n")[:-1]
        return {**json.loads(lines[-1])} if lines else {}


class Project:
    """The containers of one run."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self._environment = environment

    def compose(self, *arguments: str) -> str:
        return run(
            *(*_compose(), "-p", self.name, "-f", str(FILE), *arguments), environment=self._environment
        )

    def containers(self, service: str) -> list[Container]:
        return [Container(identifier) for identifier in self.compose("ps", "-q", service).split()]

    def container(self, service: str) -> Container:
        [container] = self.containers(service)
        return container

    def describe(self) -> str:
        """How the containers are, and what they said last."""
        return self.compose("ps") + self.compose("logs", "--tail", "10")

    def left(self) -> list[str]:
        """The containers, networks and volumes that there are of this project, by their names."""
        label = f"label=com.docker.compose.project={self.name}"
        kinds = (["ps", "-a"], ["network", "ls"], ["volume", "ls"])
        return [name for kind in kinds for name in run("docker", *kind, "-q", "--filter", label).split()]
