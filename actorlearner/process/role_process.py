"""The process of a role: its log, terminal, temporary directory, heartbeat, events and exit code."""

import enum
import logging
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from actorlearner.errors import EXIT_FAILED
from actorlearner.network.tcp_timeouts import start_tcp_timeouts
from actorlearner.process import heartbeat
from actorlearner.records.disk import make_output_robust, robust_stream
from actorlearner.records.events import FAILED, STARTED, WARNED, EventLog
from actorlearner.records.lines import LogFollower
from actorlearner.records.notify import is_supervised, notify, on_warning
from actorlearner.records.run_directory import RunDirectory

_kept: list[object] = []
_process: "RoleProcess | None" = None


class Verbosity(enum.Enum):
    """How much a run prints on the terminal; logs/ always holds everything.

    Attributes:
      QUIET: errors and incidents, and where a new run directory is.
      NORMAL: the progress as well.
      VERBOSE: all log lines, also those of libraries; in local mode the progress as well.
    """

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"


def keep_until_exit(kept: object) -> None:
    """Keeps a reference to `kept` for ever, so that its destructor never runs.

    Destroying a dataset's iterator blocks for ten seconds or more while the rate limiter blocks its sampler.
    """
    _kept.append(kept)


def end_failed(problem: str) -> None:
    """Ends this process from any thread, as a RunError of its role would; a no-op outside of a role.

    For failures that a thread detects while the role's main thread is blocked inside TensorFlow.
    """
    if _process is not None:
        _process.fail([problem], EXIT_FAILED)


class RoleProcess:
    """This process, once it runs a role."""

    def __init__(self, name: str, directory: RunDirectory, verbosity: Verbosity) -> None:
        """Redirects the output to the log, and starts the heartbeat; once in a process.

        Args:
          name: of the process, its log and its heartbeat.
          directory: the run directory.
          verbosity: how much is printed on the terminal.
        """
        global _process
        self._name = name
        self._ending = threading.RLock()
        """Never released: the first thread that ends the process decides the message and the exit code."""
        # TensorFlow (a file for each traced function) and Reverb would delete their temporary files in the
        # interpreter's shutdown, which never happens. So they get a directory that this class removes.
        self._temporary = tempfile.TemporaryDirectory(prefix="actorlearner-", ignore_cleanup_errors=True)
        tempfile.tempdir = self._temporary.name
        # Before the output is redirected: on a full disk, the error is printed on the terminal.
        heartbeat.begin(directory.heartbeat(name))
        log = directory.log(name)
        self._terminal = _redirect_output(log)
        _configure_logging(name, self._terminal, verbosity)
        is_verbose = verbosity is Verbosity.VERBOSE
        self._follower = LogFollower(log, self._terminal) if is_verbose else None
        self._events = EventLog(directory.events, name)
        self._events.record(STARTED)
        on_warning(lambda line: self._events.record(WARNED, line))
        start_tcp_timeouts()
        _process = self

    def fail(self, problems: Sequence[str], exit_code: int, *, crashed: bool = False) -> NoReturn:
        """Reports the problems to the log, the terminal and the parent process, and ends this process."""
        self._ending.acquire()
        for problem in problems:
            print(f"{self._name}: error: {problem}", file=sys.stderr)
            if not is_supervised():
                print(f"actorlearner: error: {self._name}: {problem}", file=self._terminal)
        notify("crashed" if crashed else "failed", "\n".join(problems))
        self.end(exit_code, FAILED, *problems, crashed=crashed)

    def end(self, exit_code: int, event: str, *texts: str, crashed: bool = False) -> NoReturn:
        """Records an event for each text, and ends this process without the interpreter's shutdown.

        Threads that are blocked inside TensorFlow or Reverb would make the shutdown hang or crash; by now the
        role has closed everything that has to be closed. A crashed role leaves its heartbeat behind, so that
        the next process counts as a restart.
        """
        self._ending.acquire()
        for text in texts:
            try:
                self._events.record(event, text)
            except OSError as error:  # It must not change the exit code.
                print(f"the events cannot be written: {error}", file=sys.stderr)
        heartbeat.end(crashed=crashed)
        self._temporary.cleanup()
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        if self._follower is not None:
            self._follower.end()
        os._exit(exit_code)


def _redirect_output(log: Path) -> TextIO:
    """Redirects standard output and error, also those of C++ libraries, to the log file.

    Returns:
      The terminal that standard error was.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    make_output_robust()
    terminal = robust_stream(os.dup(2))
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    return terminal


def _configure_logging(name: str, terminal: TextIO, verbosity: Verbosity) -> None:
    """Sends this package's messages to the log file, and to the terminal if a person started this role.

    With `VERBOSE`, a LogFollower prints the whole log file instead.
    """
    # AutoGraph's rewriting of TF-Agents' code raises pages of these warnings in every log.
    warnings.simplefilter("ignore", SyntaxWarning)
    # absl, which TF-Agents logs through, would add a handler of its own to the root logger.
    package = logging.getLogger("actorlearner")
    package.propagate = False
    package.setLevel(logging.INFO)
    streams = {sys.stderr: logging.INFO}
    if not is_supervised() and verbosity is not Verbosity.VERBOSE:
        streams[terminal] = logging.WARNING if verbosity is Verbosity.QUIET else logging.INFO
    for stream, level in streams.items():
        handler = logging.StreamHandler(stream)
        handler.setLevel(level)
        handler.setFormatter(logging.Formatter(f"%(asctime)s {name}: %(message)s", "%H:%M:%S"))
        package.addHandler(handler)
