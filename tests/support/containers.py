"""Containers of a run, as a person with a terminal has them."""

import abc
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support import knock
from tests.support.processes import TINY_RUN, wait_for

ENDLESS_PENDULUM = (
    *TINY_RUN,
    "learn.train_steps=1000000",
    "learn.checkpoint_interval=500",
    "replay.checkpoint_interval_s=5",
    "evaluate.interval=1000000",
)
"""Settings for sac_pendulum that make a small run without an end."""

_COMMAND_S = 300.0
_PATIENCE_S = 240.0


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


def knocks_of_a_stranger(image: str, network: str, folder: Path, *knocks: Sequence[object]) -> list[Any]:
    """Returns the outcomes of calls of `knock` in a new container of a network, with `folder` as /folder."""
    # As root: the certificates in the folder can be read by their owner only.
    options = ["--rm", "--network", network, "--user", "0", "--volume", f"{folder}:/folder:ro"]
    program = [image, "-c", Path(knock.__file__).read_text(), json.dumps(knocks)]
    return list(json.loads(run("docker", "run", *options, "--entrypoint", "python", *program)))


class Container:
    """A container, running or not."""

    def __init__(self, identifier: str) -> None:
        self.id = identifier

    @property
    def state(self) -> dict[str, Any]:
        """The engine's description of it."""
        [state] = json.loads(run("docker", "inspect", self.id))
        return {**state}

    @property
    def health(self) -> str:
        return str(self.state["State"]["Health"]["Status"])

    @property
    def log(self) -> str:
        """Returns the output of its processes, on both streams."""
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
        """The last complete record of a metrics file; empty while there is none."""
        lines = self.execute("tail", "-n", "2", f"/run_dir/metrics/{metrics}.jsonl").split("\n")[:-1]
        return {**json.loads(lines[-1])} if lines else {}


class Containers(abc.ABC):
    """The containers of a run."""

    @abc.abstractmethod
    def describe(self) -> str:
        """Returns the states of the containers and the end of their output."""

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Waits long: the containers share the machine, and each poll is a process, too."""
        try:
            wait_for(condition, what, timeout_s=_PATIENCE_S, interval_s=1.0)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.describe()}") from None

    def train_on(self, learner: Container) -> None:
        """Waits until training has gone on for a while, then slows it down to leave time to the others."""

        def train_step() -> int:
            return int(learner.last_record("learner").get("train_step", 0))

        before = train_step()
        self.wait(lambda: train_step() > before + 100, "train steps")
        run("docker", "update", "--cpus", "0.3", learner.id)
