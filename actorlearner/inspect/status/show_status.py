"""The command: says how a run is, once or again and again."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import EXIT_FINISHED
from actorlearner.inspect.status.run_status import RunLooker
from actorlearner.inspect.status.view import Row, rendered, run_rows, server_rows
from actorlearner.process.stop import Stop

_INTERVAL_S = 2.0
"""Seconds between two looks."""


def run_status(run_dir: str | None, replay_address: str | None, *, watch: bool, as_json: bool) -> int:
    """Looks at a run directory, or at a replay server; returns the exit code.

    Args:
      run_dir: the one.
      replay_address: the other.
      watch: whether to look again every _INTERVAL_S, until a signal.
      as_json: whether to print a JSON object, on a line of its own.

    Raises:
      ConfigurationError: there is no run.
      RunError: the server does not answer.
    """
    stop = Stop()
    stop.install()
    look: Callable[[], Any]
    rows: Callable[[Any], Iterator[Row]]
    if replay_address is None:
        assert run_dir is not None
        look, rows = RunLooker(Path(run_dir)).look, run_rows
    else:
        with quiet_output():
            from actorlearner.inspect.status.server_status import ServerLooker

        look, rows = ServerLooker(replay_address).look, server_rows
        look()  # Rates need two.
        if stop.wait(_INTERVAL_S):
            return stop.exit_code
    console = Console(highlight=False, markup=False, emoji=False)
    live = watch and console.is_terminal
    show = _as_json if as_json else _as_text(console, rows, live=live)
    if not watch:
        show(look())
        return EXIT_FINISHED
    try:
        return _watch(look, show, stop)
    finally:
        console.show_cursor()  # The live view hides it.


def _watch(look: Callable[[], Any], show: Callable[[Any], None], stop: Stop) -> int:
    while True:
        show(look())
        if stop.wait(_INTERVAL_S):
            return stop.exit_code


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
    view.start()  # Until the process ends: the last look stays on the terminal.
    return show_live
