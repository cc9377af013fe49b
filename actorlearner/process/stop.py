"""Requests to stop a process, by SIGINT, SIGTERM and SIGHUP: no race, no busy wait."""

import contextlib
import os
import select
import signal
import threading
import time
from types import FrameType

from actorlearner.errors import EXIT_FINISHED, EXIT_INTERRUPTED, EXIT_TERMINATED

_EXIT_CODES = {
    signal.SIGINT: EXIT_INTERRUPTED,
    signal.SIGTERM: EXIT_TERMINATED,
    signal.SIGHUP: EXIT_TERMINATED,  # The terminal is gone, as when an ssh session ends.
}

STOP_SIGNALS = frozenset(_EXIT_CODES)
"""The signals that request a stop."""

_REQUEST = b"\xff"
"""Written to the pipe for a request without a signal; no signal has this number."""

_STOPPING = {*_EXIT_CODES, *_REQUEST}


def exit_at_sigterm() -> None:
    """From now on SIGTERM raises SystemExit in the main thread, so that temporary files are removed."""

    def exit_now(number: int, frame: FrameType | None) -> None:
        raise SystemExit(EXIT_TERMINATED)

    signal.signal(signal.SIGTERM, exit_now)


class Stop:
    """A stop request that any thread can wait for.

    Attributes:
      interrupts: the number of SIGINTs so far; a second Ctrl-C gives up waiting.

    A pipe rather than a `threading.Event`: setting an event in a signal handler deadlocks if the signal
    arrives while the main thread holds that event's lock.
    """

    def __init__(self) -> None:
        """Nothing is requested yet; signals are handled from `install` on."""
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._signal: signal.Signals | None = None
        self._requested = False
        self.interrupts = 0

    def install(self) -> None:
        """Makes the signals request the stop, except SIGHUP under nohup; only the main thread may call this.

        The interpreter's C handler writes to the pipe at once (`set_wakeup_fd`). If a signal arrives just
        before `select` blocks, a handler in Python would run only after `select`.

        Forks of this process, such as an environment's workers, get the default handlers back. They share the
        pipe, so otherwise a signal to a fork would stop this process.
        """
        for number in _EXIT_CODES:
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        forking = threading.local()

        def block() -> None:
            # Blocked until the child has the default handlers: its parent may send a signal at once.
            forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)

        def unblock() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, forking.mask)

        def uninstall() -> None:
            signal.set_wakeup_fd(-1)
            for number in _EXIT_CODES:
                if signal.getsignal(number) == self._handle:
                    signal.signal(number, signal.SIG_DFL)
            unblock()

        os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=uninstall)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.receive(number)

    def receive(self, number: int) -> None:
        """Requests the stop on behalf of a signal, also one that another process received."""
        self.interrupts += number == signal.SIGINT
        # Writes to the pipe, although the C handler did: the pipe may have been full of other signals.
        self.request(signal.Signals(number))

    def request(self, number: signal.Signals | None = None) -> None:
        """Requests the stop.

        Args:
          number: the signal that decides the exit code; None without a signal, as when the work is done.
        """
        self._signal = self._signal or number
        self._requested = True
        with contextlib.suppress(BlockingIOError):  # A full pipe is fine: one byte wakes the waiting thread.
            os.write(self._writer, _REQUEST)

    @property
    def requested(self) -> bool:
        """Whether a stop was requested."""
        return self.wait(0.0)

    def wait(self, timeout_s: float) -> bool:
        """Blocks until a stop is requested, at most `timeout_s`; returns whether it was."""
        deadline = time.monotonic() + timeout_s
        while not self._requested:
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([self._reader], [], [], left_s)[0]:
                return False
            self._read()
        return True

    def _read(self) -> None:
        """Reads the pipe, which gets the number of every signal with a handler in Python.

        Other signals, such as a simulator's timer or the end of a child process, request no stop.
        """
        with contextlib.suppress(BlockingIOError):  # Another thread was faster.
            while numbers := os.read(self._reader, 4096):
                if _STOPPING.intersection(numbers):
                    self.request()  # Wakes the other waiting threads, too.
                    return

    @property
    def number(self) -> signal.Signals:
        """The signal that requested the stop; SIGTERM if it was none."""
        return self._signal or signal.SIGTERM

    @property
    def exit_code(self) -> int:
        """The exit code of the stop: 130 after SIGINT, 143 after SIGTERM or SIGHUP, else 0."""
        return _EXIT_CODES[self._signal] if self._signal else EXIT_FINISHED
