"""The roles of a run started one by one, each with a run directory of its own, in numbered environments.

They share nothing but the replay server's address, as on several machines; the numbers show afterwards what
became of every transition.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from actorlearner.agents.configuration import load_config
from actorlearner.config.resolved import to_yaml
from actorlearner.config.schema import Config, EnvironmentConfig
from benchmarks.chaos import numbered
from benchmarks.chaos.account import Account
from benchmarks.chaos.policies import steps_back
from tests.support import numbered_run
from tests.support.hosts import Host
from tests.support.processes import TINY_RUN, Command, records, wait_for


class Cluster:
    """A run on TD3 with tiny networks, whose environments have Pendulum's actions.

    Attributes:
      config: of all its roles.
    """

    def __init__(
        self, start: Callable[..., Command], directory: Path, address: str, interval_s: float, *settings: str
    ) -> None:
        """Starts nothing yet.

        Args:
          start: see the fixture.
          directory: the working directory of the commands.
          address: HOST:PORT of the replay server.
          interval_s: the minimum time between two env steps of an actor, in seconds.
          *settings: of the configuration, for `--set`.
        """
        self._start = start
        self._directory = directory
        self._address = address
        self._steps = directory / "steps"
        self._actors: list[Command] = []
        self.config = _numbered(load_config("td3_pendulum", [*TINY_RUN, *settings]), self._steps, interval_s)
        (directory / "experiment.yaml").write_text(to_yaml(self.config))

    def replay_server(self, host: Host | None = None) -> Command:
        """Starts one."""
        return self._role("replay-server", host, "replay", "--port", self._address.rpartition(":")[2])

    def learner(self, host: Host | None = None) -> Command:
        """Starts one."""
        return self._role("learner", host, "learner", "--replay_address", self._address)

    def eval_actor(self, host: Host | None = None) -> Command:
        """Starts one."""
        return self._role("eval-actor", host, "eval", "--replay_address", self._address)

    def collect_actor(self, index: int, host: Host | None = None) -> Command:
        """Starts one."""
        to_server = ("--replay_address", self._address, "--actor_index", str(index))
        self._actors.append(self._role("collect-actor", host, f"collect-{index}", *to_server))
        return self._actors[-1]

    def _role(self, role: str, host: Host | None, name: str, *options: str) -> Command:
        network = None if host is None else host.network
        command = ("-m", "actorlearner", role, "--config", "experiment.yaml", "--run_dir", name)
        return self._start(*command, *options, network=network)

    def records(self, name: str) -> list[dict[str, Any]]:
        """The metrics of a role so far: of `replay`, `learner`, `eval` or `collect-I`."""
        return records(self._directory / name / "metrics" / f"{name}.jsonl")

    def last(self, name: str, key: str) -> int:
        """The newest value of a metric; -1 before the first record."""
        values = [record[key] for record in self.records(name)]
        return int(values[-1]) if values else -1

    def wait_for(self, name: str, key: str, least: int, *running: Command) -> int:
        """Waits until a metric reaches a value; fails if one of these roles ends. Returns the metric."""

        def reached() -> bool:
            for command in running:
                assert command.process.poll() is None, command.process.communicate()
            return self.last(name, key) >= least

        wait_for(reached, f"{key} of {name} to be {least}")
        return self.last(name, key)

    def log(self, role: str, name: str) -> str:
        """The log and output of a role."""
        return (self._directory / name / "logs" / f"{role}.log").read_text()

    def policies_back(self, *indices: int) -> list[str]:
        """Where the policies of collect actors went backwards."""
        return [line for index in indices for line in steps_back(self.records(f"collect-{index}"))]

    def account(self, killed: Sequence[Command] = ()) -> Account:
        """What became of the transitions, once the replay server has ended and saved them.

        Args:
          killed: the collect actors that were.
        """
        actors = {command.process.pid for command in self._actors}
        produced = [each for each in numbered.read_produced(self._steps) if each.pid in actors]
        dead = {command.process.pid for command in killed}
        return numbered_run.account_of(self.config, produced, self._directory / "replay", dead)


def _numbered(config: Config, steps: Path, interval_s: float) -> Config:
    arguments = {
        "directory": str(steps),
        "interval_s": interval_s,
        "acts_as": dataclasses.asdict(config.environment),
    }
    environment = EnvironmentConfig(suite=numbered.SUITE, name="", kwargs=arguments)
    return dataclasses.replace(config, environment=environment)
