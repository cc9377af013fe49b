#!/usr/bin/env python3
"""Runs a command, and keeps its container alive after a refused configuration (exit code 2).

  hold.py COMMAND...

A container engine that restarts after errors does not distinguish exit codes, and would retry a wrong
configuration for ever. So the container stays, unhealthy and without the role, until it is stopped; then it
exits with 2. Any other exit code ends the container at once.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import FrameType

_USAGE_ERROR = 2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns its exit code, or 128 plus the number of the signal that killed it.

    Forwards SIGTERM and SIGINT to the command. Blocks until the command has ended, and after exit code 2
    until one of these signals arrives.
    """
    stopped = threading.Event()
    # A signal that arrives during the start waits until the role can get it.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    with subprocess.Popen(arguments, preexec_fn=_unblock) as role:

        def stop(number: int, frame: FrameType | None) -> None:
            stopped.set()
            if role.returncode is None:
                os.kill(role.pid, number)

        for number in _SIGNALS:
            signal.signal(number, stop)
        _unblock()
        code = role.wait()
    if code == _USAGE_ERROR and not stopped.is_set():
        print(
            "refused, see above: starting it again would not help; waiting to be stopped",
            file=sys.stderr,
            flush=True,
        )
        stopped.wait()
    return code if code >= 0 else 128 - code


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
