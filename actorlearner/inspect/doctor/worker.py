"""A process that makes checks: whatever becomes of it, the doctor lives on and tells."""

import os
import signal
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe

from actorlearner.errors import ConfigurationError, RunError, one_line
from actorlearner.inspect.doctor.checks import CHECKS, Check
from actorlearner.inspect.doctor.result import Result, fail
from actorlearner.inspect.doctor.subject import Subject
from actorlearner.process.child_process import die_with_parent, module_command

_END_S = 5.0
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class Worker:
    """Makes checks in a process of its own, and in a new one after that has hung or crashed."""

    def __init__(self, subject: Subject, temporary: str) -> None:
        """Starts no process yet; `temporary` is the directory for the temporary files of all."""
        self._subject = subject
        self._temporary = temporary
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None

    def make(self, check: Check) -> Result:
        """Makes one check, within its deadline."""
        process, connection = self._running or self._start()
        try:
            connection.send(check.name)
            if connection.poll(check.deadline_s):
                result: Result = connection.recv()
                return result
            ended = f"nothing came of it within {check.deadline_s:g} s"
        except (EOFError, OSError):
            ended = f"its process {_end(process)}"
        self.close()
        return fail(f"{ended}: {check.repair}")

    def close(self) -> None:
        """Ends the process."""
        if self._running is not None:
            process, connection = self._running
            self._running = None
            connection.close()
            process.kill()
            process.wait()

    def _start(self) -> tuple[subprocess.Popen[bytes], Connection]:
        # A handler that raises must do so neither between fork and exec nor before the process is known here.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self._running = self._start_undisturbed(mask)
            return self._running
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _start_undisturbed(
        self, mask: set[int | signal.Signals]
    ) -> tuple[subprocess.Popen[bytes], Connection]:
        here, there = Pipe()
        parent = os.getpid()
        process = subprocess.Popen(
            module_command("actorlearner.inspect.doctor.worker", str(there.fileno())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # What TensorFlow and simulators print.
            stderr=subprocess.DEVNULL,
            pass_fds=[there.fileno()],
            env=os.environ | {"TMPDIR": self._temporary},
            start_new_session=True,
            preexec_fn=lambda: _prepare(parent, mask),
        )
        there.close()
        here.send(self._subject)
        return process, here


def _prepare(parent: int, mask: set[int | signal.Signals]) -> None:
    """Runs in the process, between fork and exec."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    die_with_parent(parent)


def _end(process: subprocess.Popen[bytes]) -> str:
    """How a process ended that has closed its connection."""
    try:
        code = process.wait(_END_S)
    except subprocess.TimeoutExpired:
        return "does not answer"
    return f"was killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exited with {code}"


def attempt(check: Check, subject: Subject) -> Result:
    """Makes a check in this process; what it raises becomes its failure."""
    try:
        return check.make(subject)
    except ConfigurationError as error:
        return fail("; ".join(error.problems))
    except RunError as error:
        return fail(f"{error}: {check.repair}")
    except (Exception, SystemExit) as error:  # Whatever the libraries and the environment raise.
        return fail(f"{one_line(error)}: {check.repair}")


def _serve(connection: Connection) -> None:
    checks = {check.name: check for check in CHECKS}
    subject: Subject = connection.recv()
    while True:
        try:
            name: str = connection.recv()
        except EOFError:
            # Without the interpreter's shutdown, in which threads of TensorFlow and Reverb may hang.
            os._exit(0)
        connection.send(attempt(checks[name], subject))


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
