"""Starts the roles of a local run, watches them, restarts them and ends them."""

import functools
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from actorlearner.callbacks.caller import CLOSE_S
from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_USAGE, ConfigurationError, RunError
from actorlearner.local.child import Child, SupervisedProcess
from actorlearner.local.fork_server import ForkServer, Options
from actorlearner.local.restarts import Restarts
from actorlearner.local.saving import wait_saved
from actorlearner.network.hidden_server import TlsProxy
from actorlearner.network.ports import LOOPBACK, free_port
from actorlearner.network.private_network import PrivateNetwork
from actorlearner.process.cores import collect_actors
from actorlearner.process.heartbeat import read_heartbeat
from actorlearner.process.role_names import COLLECT_ACTOR, EVAL_ACTOR, LEARNER, REPLAY_SERVER
from actorlearner.process.stop import Stop
from actorlearner.records.events import DIED, EventLog
from actorlearner.records.run_directory import RunDirectory

_READY_DEADLINE_S = 960.0
"""Seconds that a starting role may be without a heartbeat.

A minute more than CONNECT_DEADLINE_S, so that a role reports a missing replay server by itself.
"""

# Seconds that roles with nothing to save get to close; then they are killed.
_ACTORS_GRACE_S = 5.0
_STARTING_GRACE_S = 5.0

_LOG_LINES = 15  # Of a log, in the message of a failure.

_ALONE_S = 7.0
"""Seconds after the learner's SIGTERM for which the other roles go on, so that its train step gets data."""


class Supervisor:
    """The processes of a local run.

    Attributes:
      started: every process so far, also those that have ended.
      events: the log of the events of the whole run, and of the deaths of its roles.
    """

    def __init__(
        self,
        config: Config,
        directory: RunDirectory,
        network: PrivateNetwork | None = None,
        route: Callable[[str, int], str] = lambda name, port: f"{LOOPBACK}:{port}",
        elsewhere: Callable[[str, int], SupervisedProcess] | None = None,
        proxy: TlsProxy | None = None,
    ) -> None:
        """Starts all roles at once; those that need the replay server wait for it by themselves.

        Args:
          config: the experiment.
          directory: its run directory.
          network: the network of all roles; None for the machine's own.
          route: called with a process's name and the replay server's port; returns the HOST:PORT at which
            that process reaches the server.
          elsewhere: called with an actor's name and index; starts it on another machine. None to start actors
            on this one.
          proxy: the port at which the replay server accepts TLS; None for plain text.
        """
        self._options = _role_options(config, route)
        self._callbacks_grace_s = CLOSE_S if config.callbacks else 0.0
        self._network = network
        self._directory = directory
        self._elsewhere = elsewhere
        self._proxy = proxy
        self._fork_server = ForkServer(directory.log("fork-server"), network, proxy)
        self.started: list[SupervisedProcess] = []
        self.events = EventLog(directory.events, "local")
        self._restarts = {name: Restarts() for name in self._options}
        self._restart_at: dict[str, float] = {}
        self._children: dict[str, SupervisedProcess] = {}
        for name in self._options:
            self._start(name)

    def _start(self, name: str) -> None:
        if name in self._children:
            self._children[name].close()
        options = self._options[name]
        index = options.get("actor_index")
        if self._elsewhere is not None and isinstance(index, int):
            self._children[name] = self._elsewhere(name, index)
        else:
            self._children[name] = self._fork(name, options)
        self.started.append(self._children[name])

    def _fork(self, name: str, options: Options) -> Child:
        if not self._fork_server.alive:
            self._fork_server = ForkServer(self._fork_server.log, self._network, self._proxy)
        role = COLLECT_ACTOR if "actor_index" in options else name
        launch = functools.partial(self._fork_server.fork, name, role, self._directory, options)
        return Child(name, launch, self._directory.log(name))

    @property
    def names(self) -> list[str]:
        """The names of the processes."""
        return list(self._children)

    def child(self, name: str) -> SupervisedProcess:
        """Returns the newest process with a name; it may have ended."""
        return self._children[name]

    @property
    def finished(self) -> bool:
        """Whether the learner has taken its last train step and the eval actor, if any, has evaluated it."""
        last = [name for name in (LEARNER, EVAL_ACTOR) if name in self._children]
        return all(self._children[name].exit_code == 0 for name in last)

    @property
    def unready(self) -> list[str]:
        """The names of the roles that are starting, or that wait for a restart."""
        return [name for name, child in self._children.items() if name in self._restart_at or not child.ready]

    @property
    def start_ups(self) -> dict[str, str]:
        """How long each phase of a role's start took, for each role that has reported it."""
        return {name: child.start_up for name, child in self._children.items() if child.start_up}

    def check(self) -> Iterator[str]:
        """Checks every role, restarts each role that died, and yields the lines to print.

        Raises:
          ConfigurationError: a role refused the configuration.
          RunError: a role failed for good, died too often, or was not ready in time.
        """
        if why := self._fork_server.failure:
            log = _last_lines(self._fork_server.log)
            reason = f"{why}: {log[-1].strip()}" if len(log) > 1 else why
            raise RunError(f"the roles cannot be started: {reason}", log)
        now = time.monotonic()
        for child in self._children.values():
            child.receive()
        for name in self._children:
            yield from self._check(name, now)
        for name, due in list(self._restart_at.items()):
            if now >= due:
                del self._restart_at[name]
                self._start(name)

    def _check(self, name: str, now: float) -> Iterator[str]:
        child = self._children[name]
        while child.warnings:
            yield f"{name}: {child.warnings.pop(0)}"
        if name in self._restart_at:
            return
        if child.exit_code is None:
            if not child.ready and self._makes_no_progress(child, now):
                raise RunError(f"{name} is not ready, and made no progress for {_READY_DEADLINE_S:.0f} s")
            return
        if child.exit_code == 0 and name != REPLAY_SERVER:
            return
        child.receive()  # The last report may have arrived since `check` read the reports.
        if child.exit_code == EXIT_USAGE and child.error:
            raise ConfigurationError(child.error.splitlines())
        if not child.error:  # Otherwise the role has recorded it.
            self.events.record(DIED, child.reason, role=name)
        delay_s = self._restart_delay_s(child, now)
        self._restart_at[name] = now + delay_s
        yield f"{name} died: {child.reason}; starting it again in {delay_s:.0f} s ({self._restarts[name]})"
        if name in (REPLAY_SERVER, LEARNER):
            # Restarts finished roles, too. A finished learner publishes its last policies again to the new
            # server, and ends; a learner that rolls back to its checkpoint needs the actors.
            others = set(self._children) - {REPLAY_SERVER, EVAL_ACTOR}
            finished = [other for other in others if self._children[other].exit_code == 0]
            self._restart_at |= dict.fromkeys(finished, now + delay_s)

    def _last_reports(self) -> Iterator[str]:
        """Yields a line for each warning and error that came since the last check."""
        for name, child in self._children.items():
            known = child.error
            child.receive()
            while child.warnings:
                yield f"{name}: {child.warnings.pop(0)}"
            if child.error != known:
                yield f"{name}: {child.error}"

    def _makes_no_progress(self, child: SupervisedProcess, now: float) -> bool:
        """Returns whether a starting role has been without a heartbeat for too long."""
        if now - child.started <= _READY_DEADLINE_S:
            return False
        try:
            last = read_heartbeat(self._directory.heartbeat(child.name)).time
        except (OSError, ValueError, TypeError):  # It has none yet.
            return True
        return time.time() - last > _READY_DEADLINE_S

    def _restart_delay_s(self, child: SupervisedProcess, now: float) -> float:
        """Returns the seconds until a dead process is restarted; raises a RunError if it never is."""
        died = "failed"
        if self._fails_alike(child):
            died = "failed twice in the same way before it was ready"
        elif child.may_be_restarted:
            delay_s = self._restarts[child.name].delay_s(now)
            if delay_s is not None:
                return delay_s
            died = "died too often"
        raise RunError(f"{child.name} {died}: {child.reason}", _last_lines(child.log))

    def _fails_alike(self, child: SupervisedProcess) -> bool:
        """Returns whether this process and the one before crashed before being ready, with the same error."""
        earlier = [each for each in self.started if each.name == child.name and each is not child]
        if child.ready or not child.error or not earlier:
            return False
        return not earlier[-1].ready and earlier[-1].error == child.error

    def shut_down(self, stop: Stop, report: Callable[[str], None]) -> None:
        """Ends every role that still runs; the learner first, because it needs data to end its train step.

        The learner and the replay server get the time that they need to save, see `wait_saved`; the others
        get 5 s to close. If no role was ever ready, there is nothing to save: all end at once, within 5 s.
        `report` is called with each line for the user.
        """
        children = self._children
        if any(child.ready for child in self.started):
            actors = [child for name, child in children.items() if name not in (REPLAY_SERVER, LEARNER)]
            if self.finished:  # Actors end by themselves; their callbacks may take a while to close.
                _wait(actors, self._callbacks_grace_s)
            learner, server = children[LEARNER], children[REPLAY_SERVER]
            learner.send(signal.SIGTERM)
            learner.wait(_ALONE_S if learner.ready else _STARTING_GRACE_S)
            if not learner.ready:  # It has nothing to save yet.
                learner.kill()
            _end(actors, _ACTORS_GRACE_S)
            server.send(signal.SIGTERM)
            for child in (learner, server):
                wait_saved(child, self._directory, stop, report)
        else:
            _end(children.values(), _STARTING_GRACE_S)
        for line in self._last_reports():
            report(line)
        self._fork_server.kill()
        for name in children:  # A killed role leaves its heartbeat.
            self._directory.heartbeat(name).unlink(missing_ok=True)


def _role_options(config: Config, route: Callable[[str, int], str]) -> dict[str, Options]:
    """Returns the options of each role's process, by its name, in the order of their starts."""
    port = free_port()
    options: dict[str, Options] = {REPLAY_SERVER: {"port": port}}
    options[LEARNER] = {"replay_address": [route(LEARNER, port)]}
    for i in range(collect_actors(config.collect)):
        name = f"{COLLECT_ACTOR}-{i}"
        options[name] = {"replay_address": [route(name, port)], "actor_index": i}
    if config.evaluate.interval is not None:
        options[EVAL_ACTOR] = {"replay_address": [route(EVAL_ACTOR, port)]}
    return options


def _last_lines(log: Path) -> list[str]:
    """Returns a heading and the last lines of a log, indented; only the heading without a log."""
    lines = log.read_text("utf-8", errors="replace").splitlines() if log.exists() else []
    return [f"the last lines of {log}:", *("  " + line for line in lines[-_LOG_LINES:])]


def _wait(children: Iterable[SupervisedProcess], timeout_s: float) -> None:
    """Blocks until all have ended, at most `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    for child in children:
        child.wait(max(0.0, deadline - time.monotonic()))


def _end(children: Iterable[SupervisedProcess], grace_s: float) -> None:
    """Terminates processes, and kills those that are left after `grace_s`."""
    for child in children:
        child.send(signal.SIGTERM)
    _wait(children, grace_s)
    for child in children:
        child.kill()
