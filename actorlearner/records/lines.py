"""Reads files of lines, such as logs and JSON, while they are written."""

import functools
import json
import logging
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

_log = logging.getLogger(__name__)

_INTERVAL_S = 0.2


class Tail:
    """Reads the complete lines that are appended to a file."""

    def __init__(self, path: Path, *, from_start: bool = False) -> None:
        """Starts at the end or the start of the file, which need not exist yet."""
        self._path = path
        self._offset = path.stat().st_size if path.exists() and not from_start else 0

    def lines(self) -> Iterator[str]:
        """Yields the complete lines since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        if newline:
            yield from whole.decode(errors="replace").splitlines()


class LogFollower:
    """Copies new lines of a log to the terminal, on a thread of its own."""

    def __init__(self, path: Path, terminal: TextIO) -> None:
        """Starts at the end of the log."""
        self._tail = Tail(path)
        self._terminal = terminal
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="log", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self._copy()

    def _copy(self) -> None:
        for line in self._tail.lines():
            print(line, file=self._terminal, flush=True)

    def end(self) -> None:
        """Copies the remaining lines and ends the thread."""
        self._ended.set()
        self._thread.join()
        self._copy()


def read_objects(path: Path, lines: Iterable[str]) -> list[dict[str, Any]]:
    """Returns the JSON objects in lines of the file `path`.

    Other lines, from a failed disk or two hosts that share a directory, are skipped, with one warning for
    each file.
    """
    objects = []
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            objects.append(value)
        else:
            _warn_once(path)
    return objects


@functools.cache
def _warn_once(path: Path) -> None:
    _log.warning("%s is damaged: lines that cannot be read are skipped", path)
