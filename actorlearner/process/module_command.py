"""Another Python process of ours, which finds the same modules as this one."""

import sys

_START = """\
import sys
sys.path[:] = {path!r}
import runpy
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def module_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module as `python -m` does, with this process's sys.path.

    `python -m` would put the working directory before all else: a file there that is called as a library is,
    say random.py, would take the library's place.
    """
    return [sys.executable, "-P", "-c", _START.format(path=sys.path, module=module), *arguments]
