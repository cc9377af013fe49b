"""An environment in a process of its own: many step at once, and a crash costs one episode."""

import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import os
import signal
import traceback
from typing import Any

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.environment import Nest, Step
from actorlearner.environments.load import load_environment
from actorlearner.environments.rendering import Frame, RenderError
from actorlearner.errors import ConfigurationError, RunError
from actorlearner.process.spawn import die_with_parent

_SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
_END_S = 2.0


class ProcessEnvironment:
    """An Environment whose simulator runs in another process; it cannot render.

    `send` starts an env step; `step` with the same action then waits for the result.

    Attributes:
      observation_spec, action_spec: nests of array specs.
    """

    frame_rate: float | None = None

    def __init__(self, config: EnvironmentConfig, seed: int, role: str, index: int) -> None:
        """Starts the process; blocks until it has made and reset its environment, see `load_environment`.

        Raises:
          ConfigurationError: the environment cannot be made.
          RunError: the process has died.
        """
        context = multiprocessing.get_context("spawn")  # A fork would share TensorFlow's threads.
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve,
            args=(theirs, os.getpid(), config, seed, role, index),
            name="environment",
            daemon=True,
        )
        self._process.start()
        theirs.close()
        self._sent = False
        answer = self._receive()
        if isinstance(answer, list):
            raise ConfigurationError(answer)
        self.observation_spec, self.action_spec = answer

    def send(self, action: Nest) -> None:
        """Starts an env step; does not block. Raises a RunError if the process has died."""
        self._ask("step", action)
        self._sent = True

    def step(self, action: Nest) -> Step:
        """Takes one env step, or waits for the one that `send` has started; blocks without a deadline.

        Raises:
          RunError: the environment raised an exception, or the process has died.
        """
        if not self._sent:
            self._ask("step", action)
        self._sent = False
        return Step(*self._receive())

    def reset(self) -> Nest:
        """Starts an episode and returns its first observation; blocks and raises as `step`."""
        self._ask("reset", None)
        return self._receive()

    def render(self) -> Frame:
        """Raises RenderError."""
        raise RenderError("it runs in a process of its own")

    def begin_close(self) -> None:
        """Makes the process close its environment and end; does not block."""
        self._connection.close()

    def close(self) -> None:
        """Ends the process, which gets _END_S to close its environment; blocks meanwhile."""
        self.begin_close()
        self._process.join(_END_S)
        self._process.kill()
        self._process.join()

    def _ask(self, what: str, action: Nest) -> None:
        try:
            self._connection.send((what, action))
        except OSError as error:
            raise self._died() from error

    def _receive(self) -> Any:
        try:
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _died(self) -> RunError:
        self._process.join(_END_S)
        return RunError(f"the environment's process has died, exit code {self._process.exitcode}")


def _serve(
    connection: multiprocessing.connection.Connection,
    parent: int,
    config: EnvironmentConfig,
    seed: int,
    role: str,
    index: int,
) -> None:
    """Makes the environment and answers until the other end is closed; `parent` is the actor's process id."""
    _ignore_signals()
    die_with_parent(parent)
    # Not a daemon any more: daemons must not start processes, as environments may. It ends with the actor.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    try:
        environment = load_environment(config, seed, role=role, index=index)
    except ConfigurationError as error:
        connection.send(list(error.problems))
        return
    connection.send((environment.observation_spec, environment.action_spec))
    while True:
        try:
            what, action = connection.recv()
        except (EOFError, OSError):
            break
        try:
            answer: Any = tuple(environment.step(action)) if what == "step" else environment.reset()
        except Exception as error:  # User code may raise anything, also what cannot be pickled.
            answer = RunError(f"{type(error).__name__}: {error}")
            answer.add_note(traceback.format_exc())  # For the actor's log.
        connection.send(answer)
    with contextlib.suppress(Exception):  # User code may raise anything, and must not keep us here.
        environment.close()
    for process in multiprocessing.active_children():
        process.terminate()
    os._exit(0)  # Skips the interpreter's shutdown, because the actor waits.


def _ignore_signals() -> None:
    """Ignores signals: Ctrl-C reaches all processes of a terminal, and Slurm signals all processes of a job.

    The actor ends this process. SIG_IGN would not do, because the simulator's child processes inherit it.
    """
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)
    # Forked processes get the default handlers back; signals are blocked until the fork has reset them.
    os.register_at_fork(
        before=functools.partial(signal.pthread_sigmask, signal.SIG_BLOCK, _SIGNALS),
        after_in_parent=functools.partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, _SIGNALS),
        after_in_child=_end_by_signals,
    )


def _end_by_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
