"""Prints the status of a run, once or repeatedly."""

import contextlib
import dataclasses
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import EXIT_FINISHED, RunError
from actorlearner.inspect.status.run_status import RunStatus, open_run, read_status
from actorlearner.inspect.status.view import rendered, run_rows, server_rows
from actorlearner.process.stop import Stop

_INTERVAL_S = 2.0
"""Seconds between two readings."""


def print_status(run_dir: str | None, replay_address: str | None, *, watch: bool, as_json: bool) -> int:
    """Prints the status of a run directory or of a replay server; returns the exit code.

    Args:
      run_dir: the run directory; None for a replay server.
      replay_address: HOST:PORT; None for a run directory.
      watch: whether to print it again every _INTERVAL_S, until a signal.
      as_json: whether to print a JSON object on one line.

    Raises:
      ConfigurationError: the directory or the server has no run.
      RunError: the server does not answer.
    """
    stop = Stop()
    stop.install()
    read: Callable[[], Any]
    if run_dir is not None:
        read = functools.partial(_read_directory, Path(run_dir))
    else:
        assert replay_address is not None
        with quiet_output():
            from actorlearner.inspect.status.server_status import ServerStatusReader

        read = ServerStatusReader(replay_address).read
        read()  # Rates need two readings.
        if stop.wait(_INTERVAL_S):
            return stop.exit_code
    console = Console(highlight=False, markup=False, emoji=False)
    if watch:
        return _watch(read, console, stop, as_json=as_json)
    _print(read(), console, None, as_json=as_json)
    return EXIT_FINISHED


def _read_directory(path: Path) -> RunStatus:
    # A run that is resumed meanwhile may have more train steps, so the configuration is read again.
    return read_status(*open_run(path))


def _watch(read: Callable[[], Any], console: Console, stop: Stop, *, as_json: bool) -> int:
    """Prints the status every _INTERVAL_S until a signal; an error is printed once while it lasts."""
    live = Live(console=console, auto_refresh=False) if console.is_terminal and not as_json else None
    failed = False
    with live or contextlib.nullcontext():
        while True:
            try:
                _print(read(), console, live, as_json=as_json)
                failed = False
            except RunError as error:  # A server does not answer while it saves replay, or starts again.
                if not failed:
                    print(error, file=sys.stderr)
                failed = True
            if stop.wait(_INTERVAL_S):
                return stop.exit_code


def _print(status: Any, console: Console, live: Live | None, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(dataclasses.asdict(status)), flush=True)
        return
    rows = run_rows(status) if isinstance(status, RunStatus) else server_rows(status)
    text = rendered(rows, console.width)
    if live is None:
        console.print(text, soft_wrap=True)
    else:
        live.update(text, refresh=True)
