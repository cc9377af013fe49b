"""The containers of the compose file, as a person with a terminal has them."""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import portpicker

from tests.support.processes import REPOSITORY, TINY_RUN, wait_for

FILE = REPOSITORY / "launch" / "docker-compose.yml"
TLS_FILE = REPOSITORY / "launch" / "docker-compose.tls.yml"
_COMMAND_S = 300.0
_BUILD_S = 900.0
_PATIENCE_S = 240.0
_SETTINGS = (
    *TINY_RUN,
    "learn.train_steps=1000000",
    "learn.checkpoint_interval=500",
    "replay.checkpoint_interval_s=5",
    "evaluate.interval=1000000",
)


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


def endless_pendulum(image: str) -> dict[str, str]:
    """What the compose files read from the environment, for a run that is small and has no end."""
    return {
        "ACTORLEARNER_IMAGE": image,
        "ACTORLEARNER_CONFIG": "sac_pendulum",
        "ACTORLEARNER_ARGS": f"--set {' '.join(_SETTINGS)}",
        "ACTORLEARNER_BOARD_PORT": str(portpicker.pick_unused_port()),
    }


def missing() -> str:
    """What there has to be, and is not, for containers on this machine; empty if nothing is missing."""
    if not shutil.which("docker"):
        return "no docker"
    if subprocess.run(["docker", "info"], capture_output=True, timeout=60, check=False).returncode:
        return "no container engine runs"
    return "" if command() else "neither docker-compose nor docker compose"


def command() -> list[str]:
    """What compose is called with here; empty if there is none."""
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

    @property
    def log(self) -> str:
        """What its processes said, on both streams."""
        command = ["docker", "logs", self.id]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=True
        )
        return done.stdout

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
    """The containers of one run, or of the part of it that one machine has."""

    def __init__(self, environment: Mapping[str, str], files: Sequence[Path]) -> None:
        self.name = f"actorlearner-{uuid.uuid4().hex[:8]}"
        self._environment = environment
        self._files = [argument for file in files for argument in ("-f", str(file))]

    def compose(self, *arguments: str) -> str:
        return run(*command(), "-p", self.name, *self._files, *arguments, environment=self._environment)

    def containers(self, service: str) -> list[Container]:
        return [Container(identifier) for identifier in self.compose("ps", "-q", service).split()]

    def container(self, service: str) -> Container:
        [container] = self.containers(service)
        return container

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Waits long: the containers share the machine, and a look at one is a process, too."""
        try:
            wait_for(condition, what, timeout_s=_PATIENCE_S, interval_s=1.0)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._describe()}") from None

    def train_on(self, learner: Container) -> None:
        """Waits until training has gone on for a while."""

        def train_step() -> int:
            return int(learner.last_record("learner").get("train_step", 0))

        before = train_step()
        self.wait(lambda: train_step() > before + 100, "train steps")

    def _describe(self) -> str:
        """How the containers are, and what they said last."""
        return self.compose("ps") + self.compose("logs", "--tail", "10")

    def left(self) -> list[str]:
        """The containers, networks and volumes that there are of this project, by their names."""
        label = f"label=com.docker.compose.project={self.name}"
        kinds = (["ps", "-a"], ["network", "ls"], ["volume", "ls"])
        return [name for kind in kinds for name in run("docker", *kind, "-q", "--filter", label).split()]


@contextmanager
def project(environment: Mapping[str, str], *files: Path) -> Iterator[Project]:
    """A project of which nothing is left afterwards."""
    made = Project(environment, files)
    try:
        yield made
    finally:
        made.compose("down", "--volumes", "--timeout", "0")
