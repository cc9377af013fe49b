"""Starts the roles of a local run, watches them and ends them."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from actorlearner.callbacks.caller import CLOSE_S
from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_USAGE, ConfigurationError, RunError
from actorlearner.local.child import Child
from actorlearner.local.fork_server import ForkServer, Options
from actorlearner.local.private_network import PrivateNetwork
from actorlearner.local.restarts import Restarts
from actorlearner.process.cores import collect_actors
from actorlearner.process.heartbeat import LONG_PATIENCE_S
from actorlearner.process.ports import free_port
from actorlearner.process.stop import Stop
from actorlearner.records.events import DIED, EventLog
from actorlearner.records.run_directory import RunDirectory

_READY_DEADLINE_S = 360.0
"""A minute more than a role waits for the replay server, which may have much to restore, and then says so."""


# What each kind of role gets to save and close.
_LEARNER_GRACE_S = 7.0
_ACTORS_GRACE_S = 3.5
_STARTING_GRACE_S = 5.0
_SERVER_GRACE_S = LONG_PATIENCE_S
"""Replay may be many gigabytes, and what is not saved is lost: this is what its heartbeat allows for."""

_SAVING_NOTICE_S = 2.0
_SAVING_INTERVAL_S = 0.25

_SERVER = "replay-server"
_LEARNER = "learner"
_ACTOR = "collect-actor"
_EVALUATOR = "eval-actor"
_FORK_SERVER = "fork-server"
_LOCAL = "local"


def _directly(role: str, port: int) -> str:
    return f"127.0.0.1:{port}"


class Supervisor:
    """The children of a local run: started, watched, started again where they died, and ended.

    Attributes:
      started: every process so far, also those that have ended.
      events: what befell the run as a whole, and the deaths of its roles.
    """

    def __init__(
        self,
        config: Config,
        directory: RunDirectory,
        network: PrivateNetwork | None = None,
        route: Callable[[str, int], str] = _directly,
    ) -> None:
        """Starts all roles at once; those that need the replay server wait for it by themselves.

        Args:
          config: the experiment.
          directory: of the run.
          network: that they are to be in; None for the machine's own.
          route: called with a role and the replay server's port; returns the HOST:PORT at which that role is
            to reach it.
        """
        self._network = network
        port = free_port()
        self._options: dict[str, Options] = {
            _SERVER: {"port": port},
            _LEARNER: {"replay_address": [route(_LEARNER, port)]},
            **{
                f"{_ACTOR}-{i}": {"replay_address": [route(f"{_ACTOR}-{i}", port)], "actor_index": i}
                for i in range(collect_actors(config.collect))
            },
            _EVALUATOR: {"replay_address": [route(_EVALUATOR, port)]},
        }
        self._patience_s = CLOSE_S if config.callbacks else 0.0
        self._fork_server = ForkServer(directory.log(_FORK_SERVER), network)
        self.started: list[Child] = []
        self.events = EventLog(directory.events, _LOCAL)
        self._directory = directory
        self._restarts = {name: Restarts() for name in self._options}
        self._due: dict[str, float] = {}
        self._children: dict[str, Child] = {}
        for name in self._options:
            self._start(name)

    def _start(self, name: str) -> None:
        if not self._fork_server.alive:
            self._fork_server = ForkServer(self._fork_server.log, self._network)
        server, options, directory = self._fork_server, self._options[name], self._directory
        role = _ACTOR if "actor_index" in options else name
        self._children[name] = Child(
            name, lambda notify: server.fork(name, role, directory, options, notify), directory.log(name)
        )
        self.started.append(self._children[name])

    @property
    def names(self) -> list[str]:
        """Of all roles."""
        return list(self._children)

    def child(self, name: str) -> Child:
        """The newest process of a role; it may have ended."""
        return self._children[name]

    @property
    def finished(self) -> bool:
        """Whether the learner has taken its last train step and the eval actor has evaluated it."""
        return all(self._children[name].exit_code == 0 for name in (_LEARNER, _EVALUATOR))

    @property
    def any_was_ready(self) -> bool:
        """Whether any process so far has said that it is ready."""
        return any(child.ready for child in self.started)

    @property
    def unready(self) -> list[str]:
        """The names of the roles that are still starting, or that wait to be started again."""
        return [name for name, child in self._children.items() if name in self._due or not child.ready]

    @property
    def start_ups(self) -> dict[str, str]:
        """Where the time of each role's start went, for the roles that said so."""
        return {name: child.start_up for name, child in self._children.items() if child.start_up}

    def check(self) -> list[str]:
        """Looks at every role, and starts those again that died; returns the lines to be said.

        Raises:
          ConfigurationError: a role refused the configuration.
          RunError: a role failed for good, died too often, or was not ready in time.
        """
        self._check_fork_server()
        now = time.monotonic()
        for child in self._children.values():
            child.listen()
        said = [line for name in self._children for line in self._check(name, now)]
        for name, due in list(self._due.items()):
            if now >= due:
                del self._due[name]
                self._start(name)
        return said

    def _check_fork_server(self) -> None:
        if why := self._fork_server.failure:
            log = self._fork_server.log
            lines = _last_lines(log)
            reason = f"{why}: {lines[-1].strip()}" if lines else why
            raise RunError(f"the roles cannot be started: {reason}", [f"the last lines of {log}:", *lines])

    def _check(self, name: str, now: float) -> Iterator[str]:
        child = self._children[name]
        while child.said:
            yield f"{name}: {child.said.pop(0)}"
        if name in self._due:
            return
        if child.exit_code is None:
            if not child.ready and now - child.started > _READY_DEADLINE_S:
                raise RunError(f"not ready within {_READY_DEADLINE_S:.0f} s: {name}")
            return
        if child.exit_code == 0 and name != _SERVER:
            return
        child.listen()  # Its last words may have come since.
        if child.exit_code == EXIT_USAGE and child.error:
            raise ConfigurationError(child.error.splitlines())
        repeats = self._fails_alike(child)
        delay_s = self._restarts[name].delay_s(now) if child.may_be_restarted and not repeats else None
        if not child.error:  # Else it has recorded that itself.
            self.events.record(DIED, child.reason, role=name)
        if delay_s is None:
            log = [f"the last lines of {child.log}:", *_last_lines(child.log)]
            died = "died too often" if child.may_be_restarted and not repeats else "failed"
            if repeats:
                died += " twice in the same way before it was ready"
            raise RunError(f"{name} {died}: {child.reason}", log)
        self._due[name] = now + delay_s
        yield f"{name} died: {child.reason}; starting it again in {delay_s:.0f} s ({self._restarts[name]})"
        if name in (_SERVER, _LEARNER):
            # A learner that had finished publishes again what the server has lost, and ends. Actors that had
            # finished are needed again by a learner that goes back to its checkpoint.
            others = set(self._children) - {_SERVER, _EVALUATOR}
            self._due |= {other: now + delay_s for other in others if self._children[other].exit_code == 0}

    def _fails_alike(self, child: Child) -> bool:
        """Returns whether a role and its process before crashed with one error before they were ready."""
        earlier = [each for each in self.started if each.name == child.name and each is not child]
        if child.ready or not child.error or not earlier:
            return False
        return not earlier[-1].ready and earlier[-1].error == child.error

    def shut_down(self, stop: Stop, report: Callable[[str], None]) -> None:
        """Ends every role that still runs: first the learner, while data still flows to it.

        Each gets time to save and close, and is killed after it: the learner 7 s, the actors 3.5 s. Replay
        comes last and gets as long as it takes to save, at most 15 minutes; a SIGINT that arrives after
        `report` was called about it gives up. Where no role was ever ready, nothing has begun that could be
        saved: all are ended together, within 5 s.

        Args:
          stop: counts the SIGINTs.
          report: is called with lines for the person who waits.
        """
        self._end_roles(stop, report)
        self._fork_server.kill()

    def _end_roles(self, stop: Stop, report: Callable[[str], None]) -> None:
        if not self.any_was_ready:
            _end(list(self._children.values()), _STARTING_GRACE_S)
            return
        actors = [child for name, child in self._children.items() if name not in (_SERVER, _LEARNER)]
        if self.finished:  # Then actors end by themselves; their callbacks may take a while to close.
            _wait(actors, self._patience_s)
        _end([self._children[_LEARNER]], _LEARNER_GRACE_S)
        _end(actors, _ACTORS_GRACE_S)
        end_server(self._children[_SERVER], stop, report)


def end_server(server: Child, stop: Stop, report: Callable[[str], None]) -> None:
    """Ends the replay server once it has saved; see `Supervisor.shut_down`."""
    if server.exit_code is None:
        server.terminate()
    if server.wait(_SAVING_NOTICE_S):
        return
    seen = stop.interrupts
    report("saving replay; Ctrl-C gives up, and loses the transitions since the last checkpoint")
    deadline = time.monotonic() + _SERVER_GRACE_S
    while not server.wait(_SAVING_INTERVAL_S):
        if stop.interrupts > seen or time.monotonic() >= deadline:
            server.kill()
            report("replay was not saved: the transitions since the last checkpoint are lost")
            return


def _last_lines(log: Path, count: int = 15) -> list[str]:
    """The end of a log, indented; nothing where there is none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return ["  " + line for line in lines[-count:]]


def _wait(children: list[Child], timeout_s: float) -> None:
    """Waits for the end of each, or until the time is over."""
    deadline = time.monotonic() + timeout_s
    for child in children:
        child.wait(max(0.0, deadline - time.monotonic()))


def _end(children: list[Child], grace_s: float) -> None:
    deadline = time.monotonic() + grace_s
    for child in children:
        if child.exit_code is None:
            child.terminate()
    for child in children:
        if not child.wait(max(0.0, deadline - time.monotonic())):
            child.kill()
