"""One role as a process of local mode."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol


class Process(Protocol):
    """What a role's process can be asked: a subprocess.Popen, or a Fork."""

    @property
    def pid(self) -> int:
        """Of the process, and of its session."""

    def poll(self) -> int | None:
        """The exit code; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end; raises subprocess.TimeoutExpired."""

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""

    def kill(self) -> None:
        """Ends it at once."""


class Child:
    """A role's process, its log and what it has told about itself.

    Attributes:
      name: the role, with its index where there are several.
      ready: whether the role has said that it is.
      start_up: where the time until then went, as the role says, and until it started to work.
      error: what the role said when it failed, else empty.
      said: what it has said to those who watch, and nobody has taken yet.
      may_be_restarted: whether another process in its place may fare better.
    """

    def __init__(self, name: str, launch: Callable[[int], Process], log: Path) -> None:
        """Starts it.

        Args:
          name: the role, with its index where there are several.
          launch: starts the process, which writes what it tells to this file descriptor (see `notify`).
          log: where all its output goes.
        """
        self.name = name
        self.log = log
        self.ready = False
        self.start_up = ""
        self.error = ""
        self.said: list[str] = []
        self.may_be_restarted = True
        self.started = time.monotonic()
        self._unread = b""
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._process = launch(writer)
        os.close(writer)

    @property
    def pid(self) -> int:
        """Of the process, and of its session."""
        return self._process.pid

    @property
    def reason(self) -> str:
        """Why it ended, in words."""
        code = self.exit_code
        if self.error or code is None:
            return self.error
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def listen(self) -> None:
        """Takes in what the role has told since the last call. Does not block."""
        while True:
            try:
                received = os.read(self._reader, 65536)
            except BlockingIOError:
                break
            if not received:
                break
            self._unread += received
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, told: dict[str, Any]) -> None:
        if told["state"] in ("failed", "crashed"):
            self.error = told["message"]
            self.may_be_restarted = told["state"] == "crashed"
        elif told["state"] == "said":
            self.said.append(told["message"])
        else:
            self.ready = True
            self.start_up = told["message"]

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process has ended."""
        self._process.send_signal(number)

    def terminate(self) -> None:
        """Asks the role to save, close and exit."""
        self.send(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the process at once and waits for that."""
        self._process.kill()
        self._process.wait()

    def wait(self, timeout_s: float) -> bool:
        """Waits for the process to end; returns whether it did within `timeout_s`."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True
