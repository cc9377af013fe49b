"""`actorlearner local` as a child process, for Python code that trains."""

import os
import signal
import subprocess
import tempfile
from typing import IO

from actorlearner.errors import (
    ERROR_PREFIX,
    EXIT_FINISHED,
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    EXIT_USAGE,
    ConfigurationError,
    RunError,
)
from actorlearner.process.spawn import die_with_parent, module_command

_ENDED = (EXIT_FINISHED, EXIT_INTERRUPTED, EXIT_TERMINATED)


class LocalCommand:
    """A running `actorlearner local`, in a session of its own: the terminal's Ctrl-C does not reach it.

    It saves and stops when this process dies.

    Attributes:
      stdout: what it prints, one line of text at a time; None without `piped`.
    """

    def __init__(self, *arguments: str, piped: bool = False) -> None:
        """Starts the command.

        Args:
          *arguments: of `actorlearner local`.
          piped: makes `stdout` readable; otherwise it is discarded.
        """
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  # Closed by `finish`.
        parent = os.getpid()
        self._process = subprocess.Popen(
            module_command("actorlearner", "local", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if piped else subprocess.DEVNULL,
            stderr=self._errors,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),
        )
        self.stdout: IO[str] | None = self._process.stdout

    @property
    def running(self) -> bool:
        """Whether the command is still running."""
        return self._process.poll() is None

    def interrupt(self) -> None:
        """Requests a stop, as Ctrl-C does: the run is saved. A second request gives up saving."""
        self._process.send_signal(signal.SIGINT)

    def finish(self) -> None:
        """Blocks until the command has ended, without a deadline: it may still train or save.

        Raises:
          ConfigurationError: the configuration was refused, and nothing was started; one line per problem.
          RunError: the run failed.
        """
        self._process.wait()
        with self._errors:
            self._errors.seek(0)
            lines = self._errors.read().splitlines()
        errors = [i for i, line in enumerate(lines) if line.startswith(ERROR_PREFIX)]
        messages = [lines[i].removeprefix(ERROR_PREFIX) for i in errors]
        code = self._process.returncode
        if code == EXIT_USAGE:
            raise ConfigurationError(messages)
        if code in _ENDED:
            return
        if not errors:
            raise RunError(f"the run ended with exit code {code}", lines)
        raise RunError(messages[0], lines[errors[0] + 1 :])  # With --quiet, incidents come before.
