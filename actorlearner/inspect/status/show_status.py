"""Prints the status of a run, once or repeatedly."""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import EXIT_FINISHED, RunError
from actorlearner.inspect.status.run_status import open_run, read_status
from actorlearner.inspect.status.view import Row, rendered, run_rows, server_rows
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
    rows: Callable[[Any], Iterator[Row]]
    if replay_address is None:
        assert run_dir is not None
        path = Path(run_dir)
        # A run that is resumed meanwhile may have more train steps, so the configuration is read again.
        read, rows = lambda: read_status(*open_run(path)), run_rows
    else:
        with quiet_output():
            from actorlearner.inspect.status.server_status import ServerStatusReader

        read, rows = ServerStatusReader(replay_address).read, server_rows
        read()  # Rates need two readings.
        if stop.wait(_INTERVAL_S):
            return stop.exit_code
    console = Console(highlight=False, markup=False, emoji=False)
    live = watch and console.is_terminal
    show = _as_json if as_json else _as_text(console, rows, live=live)
    silent = False
    try:
        while True:
            try:
                show(read())
                silent = False
            except RunError as error:  # A server does not answer while it saves replay, or starts again.
                if not watch or replay_address is None:
                    raise
                if not silent:
                    print(error, file=sys.stderr)
                silent = True
            if not watch:
                return EXIT_FINISHED
            if stop.wait(_INTERVAL_S):
                return stop.exit_code
    finally:
        if live:
            console.show_cursor()  # The live view hides it.


def _as_json(status: Any) -> None:
    print(json.dumps(dataclasses.asdict(status)), flush=True)


def _as_text(console: Console, rows: Callable[[Any], Iterator[Row]], *, live: bool) -> Callable[[Any], None]:
    def show_lines(status: Any) -> None:
        console.print(rendered(rows(status), console.width), soft_wrap=True)

    def show_live(status: Any) -> None:
        view.update(rendered(rows(status), console.width), refresh=True)

    if not live:
        return show_lines
    view = Live(console=console, auto_refresh=False)
    view.start()  # Until the process ends: the last status stays on the terminal.
    return show_live
