"""Collect actors with environments that only wait, and a replay server, started as in local mode."""

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import reverb

from actorlearner.agents.configuration import load_config
from actorlearner.agents.make import make_agent
from actorlearner.config.schema import Config
from actorlearner.environments.specs import load_specs
from actorlearner.local.child import Child
from actorlearner.local.fork_server import ForkServer, Options
from actorlearner.network.ports import free_port
from actorlearner.records.metrics import read_records
from actorlearner.records.notify import NOTIFY_VARIABLE
from actorlearner.records.run_directory import RunDirectory
from actorlearner.variables.publisher import Publisher
from benchmarks.support import waiting

_DEADLINE_S = 180.0
_POLL_INTERVAL_S = 0.05
_LATE = 1_000
"""Index of the first late actor, beyond all others."""

Record = dict[str, Any]


def configuration(wait_s: float) -> Config:
    """Returns `sac_halfcheetah` with one environment an actor, which waits, and without random actions."""
    settings = (
        f"environment.suite={waiting.SUITE}",
        "environment.name=''",
        f"environment.kwargs={{wait_s: {wait_s}}}",
        "replay.min_size=1",
        "replay.updates_per_env_step=null",
        "replay.checkpoint_interval_s=null",
        "collect.envs_per_actor=1",
        "collect.initial_random_steps=0",
    )
    return load_config("sac_halfcheetah", settings)


class Fleet:
    """A replay server, and a number of collect actors that grows on request."""

    def __init__(self, config: Config, directory: Path) -> None:
        """Starts the replay server, and blocks until it serves."""
        self._directory = RunDirectory(directory)
        self._directory.prepare(config)
        port = free_port()
        self._fork_server = ForkServer(self._directory.log("fork-server"))
        self._children: list[Child] = []
        self._late = 0
        server = self._fork("replay-server", "replay-server", {"port": port})
        self.address = f"127.0.0.1:{port}"
        self._actors: list[Child] = []
        self._wait(lambda: server.ready, "the replay server to serve")
        self.server = psutil.Process(server.pid)

    @property
    def run_id(self) -> str:
        """The id of the fleet's run."""
        return self._directory.own_run_id()

    @property
    def actors(self) -> list[psutil.Process]:
        """The processes of the collect actors, except late ones."""
        return [psutil.Process(actor.pid) for actor in self._actors]

    def grow(self, size: int) -> None:
        """Starts collect actors until there are `size`; blocks until all of them act."""
        while len(self._actors) < size:
            index = len(self._actors)
            options: Options = {"replay_address": [self.address], "actor_index": index}
            self._actors.append(self._fork(f"collect-actor-{index}", "collect-actor", options))
        self._wait(lambda: all(self.records(index) for index in range(size)), f"{size} actors to act")

    def start_late(self) -> tuple[float, str]:
        """Starts one more collect actor as people do, in an interpreter of its own, and ends it.

        Returns:
          Seconds from there to its first env step, and where they went until it was ready.
        """
        index = _LATE + self._late
        self._late += 1
        arguments = ["--config", str(self._directory.config), "--run_dir", str(self._directory.path)]
        arguments += ["--replay_address", self.address, "--actor_index", str(index)]

        def launch(notify: int) -> "subprocess.Popen[bytes]":
            return subprocess.Popen(
                [sys.executable, "-m", "actorlearner", "collect-actor", *arguments],
                env=os.environ | {NOTIFY_VARIABLE: str(notify)},
                stdin=subprocess.DEVNULL,
                pass_fds=[notify],
            )

        began = time.time()
        late = Child(f"collect-actor-{index}", launch, self._directory.log(f"collect-actor-{index}"))
        self._children.append(late)
        self._wait(lambda: self.records(index), "a late actor to act")
        late.receive()
        late.send(signal.SIGTERM)
        if not late.wait(_DEADLINE_S):
            raise RuntimeError("a late actor did not end")
        self._children.remove(late)
        return self.records(index)[0]["time"] - began, late.start_up

    def records(self, index: int) -> list[Record]:
        """Returns the metrics of a collect actor so far."""
        return read_records(self._directory.metrics(f"collect-{index}"))

    def close(self) -> None:
        """Ends all processes at once."""
        for child in self._children:
            child.kill()
        self._fork_server.kill()

    def _fork(self, name: str, role: str, options: Options) -> Child:
        launch = functools.partial(self._fork_server.fork, name, role, self._directory, options)
        child = Child(name, launch, self._directory.log(name))
        self._children.append(child)
        return child

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while not condition():
            for child in self._children:
                child.receive()
                if child.exit_code is not None:
                    raise RuntimeError(f"{child.name} ended: {child.reason}; see {child.log}")
            if time.monotonic() >= deadline:
                raise RuntimeError(f"gave up waiting for {what} after {_DEADLINE_S:.0f} s")
            time.sleep(_POLL_INTERVAL_S)


class Publishing:
    """Publishes the policy variables at an interval, as a learner would, from a thread of this process.

    Attributes:
      times: when each train step was published, in Unix seconds.
      policy_bytes: of one publication.
    """

    def __init__(self, config: Config, fleet: Fleet, interval_s: float) -> None:
        """Begins with train step 0, at once."""
        self._parts = make_agent(config, load_specs(config.environment))
        self._publisher = Publisher(reverb.Client(fleet.address), self._parts, run_id=fleet.run_id)
        self._interval_s = interval_s
        self._ended = threading.Event()
        self.times: dict[int, float] = {}
        self.policy_bytes = sum(variable.numpy().nbytes for variable in self._parts.policy_variables)
        self._thread = threading.Thread(target=self._run, name="publishing", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        train_step = 0
        while True:
            self._parts.train_step.assign(train_step)
            self.times[train_step] = time.time()
            self._publisher.publish()
            train_step += 1
            if self._ended.wait(self._interval_s):
                return

    def close(self) -> None:
        """Stops publishing."""
        self._ended.set()
        self._thread.join()
