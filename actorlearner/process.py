"""One role as a process: signals, log file, terminal, errors and exit code."""

import logging
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from actorlearner.config.schema import Config
from actorlearner.errors import EXIT_FAILED, EXIT_USAGE, ConfigurationError, RunError
from actorlearner.notify import is_supervised, notify
from actorlearner.run_directory import RunDirectory, new_run_directory
from actorlearner.stop import Stop

_log = logging.getLogger(__name__)


def run_role(
    role: str, config: Config, run_dir: str | None, options: Mapping[str, int | str], experiment: str
) -> int:
    """Runs one role in this process until it ends; returns the exit code.

    Args:
      role: replay-server, collect-actor, eval-actor or learner.
      config: the experiment.
      run_dir: the run directory; None makes a new one under runs/.
      options: the role's own arguments, by name.
      experiment: names a new run directory.

    Raises:
      ConfigurationError: the run directory holds a run of another configuration.
      RunError: the run directory cannot be used.
    """
    stop = Stop()
    stop.install()
    directory = RunDirectory(Path(run_dir)) if run_dir else new_run_directory(experiment)
    directory.prepare(config)
    name = f"{role}-{options['actor_index']}" if "actor_index" in options else role
    terminal = _redirect_output(directory.log(name))
    _configure_logging(name, terminal)
    if run_dir is None:
        _log.info("run directory: %s", directory.path)
    try:
        _role_function(role)(config, directory, stop, **options)
    except ConfigurationError as error:
        return _fail(terminal, name, error.problems, EXIT_USAGE)
    except RunError as error:
        return _fail(terminal, name, [str(error)], EXIT_FAILED)
    except Exception as error:
        traceback.print_exc()  # Standard error is the log file by now.
        first_line = (str(error).strip().splitlines() or [""])[0]
        return _fail(terminal, name, [f"{type(error).__name__}: {first_line}"], EXIT_FAILED)
    _log.info("ended, exit code %d", stop.exit_code)
    return stop.exit_code


def leave(exit_code: int) -> None:
    """Ends the process without the interpreter's shutdown.

    Threads that are blocked inside TensorFlow or Reverb would make that hang or crash; by now the role
    has closed what has to be closed.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def _role_function(role: str):  # type: ignore[no-untyped-def]
    """Imports the role only now: TensorFlow comes with it."""
    if role == "replay-server":
        from actorlearner.roles import replay_server

        return replay_server.run
    if role == "collect-actor":
        from actorlearner.roles import collect_actor

        return collect_actor.run
    if role == "eval-actor":
        from actorlearner.roles import eval_actor

        return eval_actor.run
    from actorlearner.roles import learner

    return learner.run


def _redirect_output(log: Path) -> TextIO:
    """Sends standard output and error to the log file, with what C++ libraries print to them.

    Returns:
      The terminal that standard error was.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    terminal = os.fdopen(os.dup(2), "w", buffering=1)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    return terminal


def _configure_logging(name: str, terminal: TextIO) -> None:
    """Our own messages go to the log file, and to the terminal if a person started this role."""
    # absl, which TF-Agents logs through, would add a handler of its own to the root logger.
    package = logging.getLogger("actorlearner")
    package.propagate = False
    package.setLevel(logging.INFO)
    streams = [sys.stderr] if is_supervised() else [sys.stderr, terminal]
    for stream in streams:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter(f"%(asctime)s {name}: %(message)s", "%H:%M:%S"))
        package.addHandler(handler)


def _fail(terminal: TextIO, name: str, problems: tuple[str, ...] | list[str], exit_code: int) -> int:
    for problem in problems:
        print(f"{name}: error: {problem}", file=sys.stderr)
        if not is_supervised():
            print(f"actorlearner: error: {name}: {problem}", file=terminal)
    notify("failed", "\n".join(problems))
    return exit_code
