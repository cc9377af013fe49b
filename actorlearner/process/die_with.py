"""Processes that cannot outlive their parent."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec nothing should be loaded any more.
_libc = ctypes.CDLL(None, use_errno=True)


def die_with(parent: int) -> None:
    """Has the kernel kill this process when its parent dies, however it dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # It died before the call above.
