"""Starts the roles of a local run, watches them and ends them."""

import socket
import time
from pathlib import Path

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_USAGE, ConfigurationError, RunError
from actorlearner.local.child import Child
from actorlearner.machine import collect_actors
from actorlearner.run_directory import RunDirectory

_READY_DEADLINE_S = 180.0

# What each kind of role gets to save and close; together below the 15 s within which Ctrl-C ends a run.
_LEARNER_GRACE_S = 7.0
_ACTORS_GRACE_S = 3.5
_SERVER_GRACE_S = 2.0


class Supervisor:
    """The children of a local run."""

    def __init__(self, config: Config, directory: RunDirectory) -> None:
        """Starts all roles at once; those that need the replay server wait for it by themselves."""
        self._started = time.monotonic()
        port = _free_port()
        address = f"127.0.0.1:{port}"
        common = ["--config", str(directory.config), "--run_dir", str(directory.path)]
        to_server = [*common, "--replay_address", address]

        def start(role: str, arguments: list[str], suffix: str = "") -> Child:
            log: Path = directory.log(role + suffix)
            return Child(role + suffix, [role, *arguments], log)

        self.server = start("replay-server", [*common, "--port", str(port)])
        self.learner = start("learner", to_server)
        self.actors = [
            start("collect-actor", [*to_server, "--actor_index", str(i)], f"-{i}")
            for i in range(collect_actors(config.collect))
        ]
        self.evaluator = start("eval-actor", to_server)

    @property
    def children(self) -> list[Child]:
        """All roles, the replay server first."""
        return [self.server, self.learner, *self.actors, self.evaluator]

    @property
    def finished(self) -> bool:
        """Whether the learner has taken its last train step and the eval actor has evaluated it."""
        return self.learner.exit_code == 0 and self.evaluator.exit_code == 0

    @property
    def unready(self) -> list[str]:
        """The names of the roles that are still starting."""
        return [child.name for child in self.children if not child.ready]

    @property
    def start_ups(self) -> dict[str, str]:
        """Where the time of each role's start went, for the roles that said so."""
        return {child.name: child.start_up for child in self.children if child.start_up}

    def check(self) -> None:
        """Looks at every role.

        Raises:
          ConfigurationError: a role refused the configuration.
          RunError: a role failed, or was not ready in time.
        """
        for child in self.children:
            child.listen()
        for child in self.children:
            self._check(child)
        if self.unready and time.monotonic() - self._started > _READY_DEADLINE_S:
            raise RunError(f"not ready within {_READY_DEADLINE_S:.0f} s: {', '.join(self.unready)}")

    def _check(self, child: Child) -> None:
        code = child.exit_code
        if code is None or (code == 0 and child is not self.server):
            return
        child.listen()  # Its last words may have come since.
        if code == EXIT_USAGE and child.error:
            raise ConfigurationError(child.error.splitlines())
        reason = child.error or ("killed by signal " + str(-code) if code < 0 else f"exit code {code}")
        log = [f"the last lines of {child.log}:", *("  " + line for line in child.last_log_lines())]
        raise RunError(f"{child.name} failed: {reason}", log)

    def shut_down(self) -> None:
        """Ends every role that still runs: first the learner, while data still flows to it.

        Each gets time to save and close, and is killed after it; at most 13 s altogether.
        """
        _end([self.learner], _LEARNER_GRACE_S)
        _end([*self.actors, self.evaluator], _ACTORS_GRACE_S)
        _end([self.server], _SERVER_GRACE_S)


def _end(children: list[Child], grace_s: float) -> None:
    deadline = time.monotonic() + grace_s
    for child in children:
        if child.exit_code is None:
            child.terminate()
    for child in children:
        if not child.wait(max(0.0, deadline - time.monotonic())):
            child.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
