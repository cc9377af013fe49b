"""One role as a process: signals, log file, terminal, errors and exit code."""

import functools
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
from actorlearner.process import heartbeat
from actorlearner.process.silent_peers import give_up_silent_peers
from actorlearner.process.stop import Stop
from actorlearner.process.tensor_leak import stop_tensor_leak
from actorlearner.process.uncollected import uncollected
from actorlearner.process.verbosity import Verbosity
from actorlearner.records.disk import lasting, make_output_last
from actorlearner.records.events import ENDED, FAILED, STARTED, WARNED, EventLog
from actorlearner.records.metrics import written_records
from actorlearner.records.notify import is_supervised, listen, notify
from actorlearner.records.run_directory import RunDirectory, new_run_directory
from actorlearner.records.tail import LogFollower

_log = logging.getLogger(__name__)

Run = Callable[..., None]
"""The function `run(config, directory, stop, **options)` of a role."""

_kept: list[object] = []
_fails: Callable[[Sequence[str], int], NoReturn] | None = None
_ending = threading.RLock()
"""Held for good by the first thread that ends the process: it decides what is said, and the exit code."""
_temporary: tempfile.TemporaryDirectory[str] | None = None
_follower: LogFollower | None = None
_events: EventLog | None = None


def keep_until_exit(kept: object) -> None:
    """Spares `kept` its destructor: a role's process ends without destroying it.

    Destroying a dataset's iterator waits, for ten seconds or more, for a sampler that the rate limiter
    holds back.
    """
    _kept.append(kept)


def end_failed(problem: str) -> None:
    """Ends this process as a RunError of its role would, from any thread.

    For where the role's own thread is blocked inside TensorFlow. Nothing happens outside of a role.
    """
    if _fails is not None:
        _fails([problem], EXIT_FAILED)


def run_role(
    name: str,
    import_role: Callable[[], Run],
    config: Config,
    sources: Sources,
    run_dir: str | None,
    options: Mapping[str, Any],
    experiment: str,
    verbosity: Verbosity = Verbosity.NORMAL,
    metrics: tuple[str, int] | None = None,
) -> NoReturn:
    """Runs one role until it ends, then ends this process with the role's exit code.

    Args:
      name: of the process, its log and its heartbeat.
      import_role: imports the role and returns its `run`; called once output goes to the log, because
        TensorFlow comes with the role.
      config: the experiment.
      sources: where the value of each key comes from, for error messages.
      run_dir: the run directory; None makes a new one under runs/.
      options: the keyword arguments of the role's `run`.
      experiment: names a new run directory.
      verbosity: how much is printed on the terminal.
      metrics: the address and port that Prometheus may scrape; None for no such port.

    Raises:
      ConfigurationError: the run directory holds a run of another configuration, or a process that runs.
      RunError: the run directory cannot be used.
    """
    stop = Stop()
    stop.install()
    directory = RunDirectory(Path(run_dir)) if run_dir else new_run_directory(experiment)
    if not is_supervised():  # Else local mode holds it.
        directory.hold()
    directory.prepare(config, joins="replay_address" in options)
    terminal = _redirect_output(directory.log(name))
    global _fails
    _fails = functools.partial(_fail, terminal, name)
    _configure_logging(name, terminal, verbosity)
    if verbosity is Verbosity.VERBOSE:
        global _follower
        _follower = LogFollower(directory.log(name), terminal)
    _own_temporary_files()
    heartbeat.begin(directory.heartbeat(name))
    _begin_events(directory, name)
    give_up_silent_peers()
    if run_dir is None:
        _log.info("run directory: %s", directory.path)
    try:
        if metrics is not None:
            from actorlearner.records.prometheus import serve_metrics

            serve_metrics(metrics, written_records)
        _import(import_role)(config, directory, stop, **options)
    except ConfigurationError as error:
        # The process that started this one made the file that the values come from here, and knows better.
        known = {} if is_supervised() else sources
        _fail(terminal, name, [with_source(line, known) for line in error.problems], EXIT_USAGE)
    except RunError as error:
        _fail(terminal, name, [str(error)], EXIT_FAILED)
    except Exception as error:
        traceback.print_exc()  # Standard error is the log file by now.
        first_line = (str(error).strip().splitlines() or [""])[0]
        _fail(terminal, name, [f"{type(error).__name__}: {first_line}"], EXIT_FAILED, state="crashed")
    _log.info("ended, exit code %d", stop.exit_code)
    _record(ENDED, f"exit code {stop.exit_code}")
    _leave(stop.exit_code)


def _begin_events(directory: RunDirectory, name: str) -> None:
    global _events
    _events = events = EventLog(directory.events, name)
    events.record(STARTED)
    listen(lambda line: events.record(WARNED, line))


def _record(event: str, text: str) -> None:
    """Records an event; the process ends now, and not otherwise because this cannot be written."""
    if _events is not None:
        try:
            _events.record(event, text)
        except OSError as error:
            print(f"the events cannot be written: {error}", file=sys.stderr)


def _leave(exit_code: int) -> NoReturn:
    """Ends the process without the interpreter's shutdown.

    Threads that are blocked inside TensorFlow or Reverb would make that hang or crash; by now the role
    has closed what has to be closed.
    """
    _ending.acquire()
    heartbeat.end()
    if _temporary is not None:
        _temporary.cleanup()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    if _follower is not None:
        _follower.end()
    os._exit(exit_code)


def _own_temporary_files() -> None:
    """Keeps this process's temporary files in a directory of their own, which goes when it ends.

    TensorFlow (a file for each function it traces) and Reverb would leave theirs: they delete them in the
    interpreter's shutdown, if at all.
    """
    global _temporary
    _temporary = tempfile.TemporaryDirectory(prefix="actorlearner-", ignore_cleanup_errors=True)
    tempfile.tempdir = _temporary.name


def _import(import_role: Callable[[], Run]) -> Run:
    with uncollected():
        run = import_role()
    if not stop_tensor_leak():
        _log.warning("TensorFlow's eager tensors leak memory under this Python; a long run will grow")
    return run


def _redirect_output(log: Path) -> TextIO:
    """Sends standard output and error to the log file, with what C++ libraries print to them.

    Returns:
      The terminal that standard error was.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    make_output_last()
    terminal = lasting(os.dup(2))
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    return terminal


def _configure_logging(name: str, terminal: TextIO, verbosity: Verbosity) -> None:
    """Our own messages go to the log file, and to the terminal if a person started this role.

    Of a role that is to say everything, a LogFollower brings them there.
    """
    # About TF-Agents' code, as autograph rewrites it: pages of them in every log.
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


def _fail(
    terminal: TextIO, name: str, problems: Sequence[str], exit_code: int, state: str = "failed"
) -> NoReturn:
    _ending.acquire()
    for problem in problems:
        print(f"{name}: error: {problem}", file=sys.stderr)
        if not is_supervised():
            print(f"actorlearner: error: {name}: {problem}", file=terminal)
        _record(FAILED, problem)
    notify(state, "\n".join(problems))
    _leave(exit_code)
