"""A process that makes checks, so that a crash or a hang in a check does not end the doctor."""

import contextlib
import os
import signal
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe

from actorlearner.errors import ConfigurationError, RunError, one_line
from actorlearner.inspect.doctor.check import Check, CheckedExperiment, Result, fail
from actorlearner.process.spawn import die_with_parent, module_command

_END_S = 5.0
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class Worker:
    """Makes checks in another process, and replaces that process after it hangs or crashes."""

    def __init__(self, experiment: CheckedExperiment, temporary: str) -> None:
        """Does not start the process yet; `temporary` is its directory for temporary files."""
        self._experiment = experiment
        self._temporary = temporary
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None

    def make(self, check: Check) -> Result:
        """Makes one check; blocks for up to its deadline."""
        process, connection = self._running or self._start()
        try:
            connection.send(check)
            if connection.poll(check.deadline_s):
                result: Result = connection.recv()
                return result
            ended = f"no result within {check.deadline_s:g} s"
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
            with contextlib.suppress(ProcessLookupError):  # Nothing is left of its session.
                os.killpg(process.pid, signal.SIGKILL)  # With the simulators that an environment has started.
            process.wait()

    def _start(self) -> tuple[subprocess.Popen[bytes], Connection]:
        here, there = Pipe()
        parent = os.getpid()
        # A signal handler must not raise between fork and exec, nor before `_running` holds the process.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process = subprocess.Popen(
                module_command("actorlearner.inspect.doctor.worker", str(there.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # TensorFlow and simulators print.
                stderr=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                env=os.environ | {"TMPDIR": self._temporary},
                start_new_session=True,
                preexec_fn=lambda: _prepare(parent, mask),
            )
            self._running = process, here
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        there.close()
        here.send(self._experiment)
        return self._running


def _prepare(parent: int, mask: set[int | signal.Signals]) -> None:
    """Prepares the child process between fork and exec."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    die_with_parent(parent)


def _end(process: subprocess.Popen[bytes]) -> str:
    """Returns how a process ended after it closed its connection."""
    try:
        code = process.wait(_END_S)
    except subprocess.TimeoutExpired:
        return "does not answer"
    return f"was killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exited with {code}"


def attempt(check: Check, experiment: CheckedExperiment) -> Result:
    """Makes a check in this process; an exception becomes a failure."""
    try:
        return check.make(experiment)
    except ConfigurationError as error:
        return fail("; ".join(error.problems))
    except RunError as error:
        return fail(f"{error}: {check.repair}")
    except (Exception, SystemExit) as error:  # Libraries and environments may raise anything.
        return fail(f"{one_line(error)}: {check.repair}")


def _serve(connection: Connection) -> None:
    experiment: CheckedExperiment = connection.recv()
    while True:
        try:
            check: Check = connection.recv()
        except EOFError:
            # Skips the interpreter's shutdown, in which threads of TensorFlow and Reverb may hang.
            os._exit(0)
        connection.send(attempt(check, experiment))


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
