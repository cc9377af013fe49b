"""Runs the command as forks of a process that has imported it, without starting an interpreter."""

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from actorlearner.cli import main as cli


class Ended(NamedTuple):
    """How a process ended."""

    exit_code: int
    cpu_s: float


class Forks:
    """Runs `python -m actorlearner` with other arguments again and again, one at a time."""

    def __init__(self, environment: Mapping[str, str], limit_s: int) -> None:
        """Starts the process that forks.

        Args:
          environment: of all processes; its PYTHONPATH has to find this module.
          limit_s: a command that takes longer is killed.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(limit_s)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: Sequence[str], folder: Path, out: Path, err: Path) -> Ended:
        """Runs the command in `folder`, with its standard output and error in files."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = json.dumps([list(arguments), str(folder), str(out), str(err)])
        print(request, file=self._process.stdin, flush=True)
        return Ended(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """Ends the process that forks."""
        self._process.communicate()


def _become(limit_s: int, arguments: list[str], folder: str, out: str, err: str) -> NoReturn:
    """Becomes the command with these arguments, without the interpreter's shutdown."""
    signal.alarm(limit_s)
    os.setsid()
    os.chdir(folder)
    for path, descriptor in ((os.devnull, 0), (out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), descriptor)
    sys.path[0] = folder
    sys.argv = ["actorlearner", *arguments]
    try:
        runpy.run_module("actorlearner", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)
    raise AssertionError


def main() -> None:
    """Answers each request, a line of standard input, with its exit code and CPU time."""
    limit_s = int(sys.argv[1])
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        # Imports what most cases import, also late imports.
        assert cli.main(["local", "--config", "sac_pendulum", "--set", "seed=-1"]) == 2
    for request in sys.stdin:
        pid = os.fork()
        if not pid:
            _become(limit_s, *json.loads(request))
        _, status, usage = os.wait4(pid, 0)
        ended = Ended(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
        print(json.dumps(ended), flush=True)


if __name__ == "__main__":
    main()
