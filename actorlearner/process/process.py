"""Runs a role as this process: signals, log file, terminal, heartbeat, errors and exit code."""

import dataclasses
import enum
import logging
import os
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from actorlearner.config.problems import Sources, with_source
from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FAILED, EXIT_USAGE, ConfigurationError, RunError
from actorlearner.network.hidden import TlsProxy
from actorlearner.network.tcp_timeouts import start_tcp_timeouts
from actorlearner.network.tls import open_tunnels
from actorlearner.process import heartbeat
from actorlearner.process.stop import Stop
from actorlearner.process.tensorflow_setup import stop_tensor_leak, without_gc
from actorlearner.records.disk import make_output_robust, robust_stream
from actorlearner.records.events import ENDED, FAILED, STARTED, WARNED, EventLog
from actorlearner.records.lines import LogFollower
from actorlearner.records.metrics import written_records
from actorlearner.records.notify import is_supervised, notify, on_warning
from actorlearner.records.run_directory import RunDirectory, new_run_directory

_log = logging.getLogger(__name__)

RoleFunction = Callable[..., None]
"""The function `run(config, directory, stop, **options)` of a role."""

_kept: list[object] = []
_process: "_RoleProcess | None" = None


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


@dataclasses.dataclass(frozen=True)
class Start:
    """A request to start a role.

    Attributes:
      config: the experiment.
      sources: where the value of each key comes from, for error messages.
      run_dir: the run directory; None makes a new one under runs/.
      experiment: names a new run directory.
      options: the keyword arguments of the role's `run`.
      verbosity: how much is printed on the terminal.
      metrics: the address and port that Prometheus may scrape; None for no such port.
      certificate: of the run, with which a client of the replay server connects by TLS; None for plain text.
      proxy: where the replay server takes TLS; None for plain text.
    """

    config: Config
    sources: Sources
    run_dir: str | None
    experiment: str
    options: Mapping[str, Any]
    verbosity: Verbosity = Verbosity.NORMAL
    metrics: tuple[str, int] | None = None
    certificate: Path | None = None
    proxy: TlsProxy | None = None


def run_role(name: str, import_role: Callable[[], RoleFunction], start: Start) -> NoReturn:
    """Runs one role until it ends, then ends this process with the role's exit code.

    Args:
      name: of the process, its log and its heartbeat.
      import_role: imports the role, and with it TensorFlow, and returns the role's `run`; called after output
        was redirected to the log.
      start: the configuration and options of the role.

    Raises:
      ConfigurationError: the run directory holds a run of another configuration, or another process runs
        there.
      RunError: the run directory cannot be used.
    """
    stop = Stop()
    stop.install()
    directory = RunDirectory(Path(start.run_dir)) if start.run_dir else new_run_directory(start.experiment)
    if not is_supervised():  # Else local mode holds it.
        directory.hold()
    directory.prepare(start.config, joins="replay_address" in start.options)
    global _process
    _process = process = _RoleProcess(name, directory, start.verbosity)
    if start.run_dir is None:
        # A warning, so that --quiet prints it: nothing else says where the role writes.
        _log.warning("run directory: %s", directory.path)
    try:
        if start.metrics is not None:
            from actorlearner.records.prometheus import serve_metrics

            serve_metrics(start.metrics, written_records)
        with without_gc():
            run = import_role()
        if not stop_tensor_leak():
            _log.warning("TensorFlow's eager tensors leak memory under this Python; a long run will grow")
        run(start.config, directory, stop, **_by_tls(start))
    except ConfigurationError as error:
        # A supervised role has read the file that local mode wrote; local mode adds the sources.
        known = {} if is_supervised() else start.sources
        if not is_supervised():
            directory.withdraw()
        process.fail([with_source(line, known) for line in error.problems], EXIT_USAGE)
    except RunError as error:
        process.fail([str(error)], EXIT_FAILED)
    except (Exception, SystemExit) as error:  # The user's code may raise anything.
        traceback.print_exc()  # Standard error is the log file by now.
        first_line = (str(error).strip().splitlines() or [""])[0]
        process.fail([f"{type(error).__name__}: {first_line}"], EXIT_FAILED, state="crashed")
    _log.info("ended, exit code %d", stop.exit_code)
    process.end(stop.exit_code, ENDED, f"exit code {stop.exit_code}")


def _by_tls(start: Start) -> Mapping[str, Any]:
    """Opens the TLS proxy or tunnels, if any; returns the role's options.

    With a certificate, `replay_address` has the addresses of the tunnels.
    """
    if start.proxy is not None:
        start.proxy.open(start.options["port"])
    if start.certificate is None:
        return start.options
    return {
        **start.options,
        "replay_address": open_tunnels(start.options["replay_address"], start.certificate),
    }


class _RoleProcess:
    """The log, terminal, temporary directory, heartbeat and events of a role's process."""

    def __init__(self, name: str, directory: RunDirectory, verbosity: Verbosity) -> None:
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

    def fail(self, problems: Sequence[str], exit_code: int, state: str = "failed") -> NoReturn:
        """Reports the problems to the log, the terminal and the parent process, and ends this process."""
        self._ending.acquire()
        for problem in problems:
            print(f"{self._name}: error: {problem}", file=sys.stderr)
            if not is_supervised():
                print(f"actorlearner: error: {self._name}: {problem}", file=self._terminal)
        notify(state, "\n".join(problems))
        self.end(exit_code, FAILED, *problems, crashed=state == "crashed")

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
