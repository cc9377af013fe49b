"""Child processes: run Python modules with this process's sys.path, and die with their parent."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
# Loaded here, because nothing should be loaded between fork and exec.
_libc = ctypes.CDLL(None, use_errno=True)

_PROGRAM = """\
import sys
sys.path[:] = {path!r}
import runpy
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def module_command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module as `python -m` does, with this process's sys.path.

    `python -m` would put the working directory first: a file there with the name of a library, say
    random.py, would hide the library.
    """
    return [sys.executable, "-P", "-c", _PROGRAM.format(path=sys.path, module=module), *arguments]


def die_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Makes the kernel send this process a signal when its parent, with this process id, dies in any way."""
    _libc.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)  # It died before the call above.
