"""A role's process in local mode, with what it has reported."""

import json
import math
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actorlearner.local.fork_server import Fork

_POLL_INTERVAL_S = 0.02


class SupervisedProcess(ABC):
    """A role's process, on this machine or another: its log and its reports.

    Attributes:
      name: the role, with its index where there are several.
      log: the file with all its output.
      started: when it was started, in seconds of the monotonic clock; infinity while it waits for a machine.
      ready: whether the role has reported that it is ready.
      start_up: how long each phase of its start took, as the role reported.
      error: the message with which the role failed; else empty.
      warnings: the reported warnings that nobody has shown yet.
      may_be_restarted: False after an error that a new process would repeat.
    """

    def __init__(self, name: str, log: Path) -> None:
        """Nothing is reported yet."""
        self.name = name
        self.log = log
        self.started = time.monotonic()
        self.ready = False
        self.start_up = ""
        self.error = ""
        self.warnings: list[str] = []
        self.may_be_restarted = True

    @property
    @abstractmethod
    def pid(self) -> int:
        """The id of the process, on its machine, and of its session; see `Fork.pid`."""

    @property
    @abstractmethod
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""

    @property
    def reason(self) -> str:
        """Why the process ended; empty while it runs without an error."""
        code = self.exit_code
        if self.error or code is None:
            return self.error
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    @abstractmethod
    def receive(self) -> None:
        """Processes the reports that have arrived; does not block."""

    @abstractmethod
    def send(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process has ended; SIGTERM makes a role save, close and exit."""

    @abstractmethod
    def kill(self) -> None:
        """Kills the process and blocks until it has ended."""

    @abstractmethod
    def wait(self, timeout_s: float) -> bool:
        """Blocks until the process has ended, at most `timeout_s`; returns whether it has ended."""

    @abstractmethod
    def close(self) -> None:
        """Releases the channel of the reports; called after the process has ended, before its restart."""


class Child(SupervisedProcess):
    """A role's process on this machine."""

    def __init__(self, name: str, launch: Callable[[int], subprocess.Popen[Any] | Fork], log: Path) -> None:
        """Starts the process.

        Args:
          name: the role, with its index where there are several.
          launch: starts the process, which reports to the given file descriptor (see `notify`).
          log: the file with all its output.
        """
        super().__init__(name, log)
        self._unread = b""
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._process = launch(writer)
        os.close(writer)

    @property
    def pid(self) -> int:
        """The id of the process and of its session; see `Fork.pid`."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process.poll()

    def receive(self) -> None:
        """Processes the reports that have arrived; does not block."""
        if self._reader < 0:
            return
        try:
            while received := os.read(self._reader, 65536):
                self._unread += received
        except BlockingIOError:
            pass
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            report = json.loads(line)
            state, message = report["state"], report["message"]
            if state in ("failed", "crashed"):
                self.error = message
                self.may_be_restarted = state == "crashed"
            elif state == "warning":
                self.warnings.append(message)
            else:
                self.ready = True
                self.start_up = message

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process has ended; SIGTERM makes a role save, close and exit."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kills the process and blocks until it has ended."""
        self.send(signal.SIGKILL)
        self.wait(math.inf)

    def wait(self, timeout_s: float) -> bool:
        """Blocks until the process has ended, at most `timeout_s`; returns whether it has ended."""
        deadline = time.monotonic() + timeout_s
        while self.exit_code is None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_INTERVAL_S)
        return True

    def close(self) -> None:
        """Closes the pipe of its reports."""
        os.close(self._reader)
        self._reader = -1
