"""Following files of lines while they are written."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_INTERVAL_S = 0.2


class Tail:
    """What is appended to a file, in whole lines."""

    def __init__(self, path: Path, *, from_start: bool = False) -> None:
        """Begins at the end of the file, or at its start; it need not be there yet."""
        self._path = path
        self._offset = path.stat().st_size if path.exists() and not from_start else 0

    def lines(self) -> Iterator[str]:
        """Yields the lines since the last call; of one that is still being written, nothing yet."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        if newline:
            yield from whole.decode(errors="replace").splitlines()


class LogFollower:
    """Copies what goes to a log to the terminal, on a thread of its own."""

    def __init__(self, path: Path, terminal: TextIO) -> None:
        """Begins with what comes from now on."""
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
        """Copies what is left."""
        self._ended.set()
        self._thread.join()
        self._copy()
