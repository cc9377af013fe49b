"""The process that forks roles: `python -m actorlearner.local.forking FD`, started by ForkServer alone.

It has a single thread of Python, and TensorFlow, which makes its threads when it is first used, has none yet.
"""

import contextlib
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

from actorlearner.local.fork_server import LONGEST_MESSAGE
from actorlearner.process.die_with import die_with
from actorlearner.process.uncollected import uncollected

_SHARED = (
    "actorlearner.cli.main",
    "actorlearner.roles.replay_server",
    "actorlearner.roles.collect_actor",
    "actorlearner.roles.eval_actor",
    "actorlearner.roles.learner",
)


def main() -> None:
    """Imports what all roles need, then forks until the other side closes the socket."""
    with uncollected():  # Or each fork's collector would touch, and so copy, all that is shared.
        for module in _SHARED:
            importlib.import_module(module)
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        request = _serve(asked)
    if request is not None:  # In a fork.
        _run(*request)


def _serve(asked: socket.socket) -> tuple[dict[str, Any], int] | None:
    """Forks for each request and tells of ends; returns the request and its file descriptor in the forks."""
    forks: dict[int, int] = {}
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    os.set_blocking(ended, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(ends, warn_on_full_buffer=False)
    parent = os.getpid()
    while True:
        ready = select.select([asked, ended], [], [])[0]
        if ended in ready:
            os.read(ended, 4096)
            _tell_ends(asked, forks)
        if asked not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(asked, LONGEST_MESSAGE, 1)
        if not message:
            return None
        request = json.loads(message)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(ended)
            os.close(ends)
            os.setsid()
            die_with(parent)
            return request, descriptors[0]
        os.close(descriptors[0])
        forks[pid] = request["fork"]
        _tell(asked, {"fork": forks[pid], "pid": pid})


def _tell_ends(asked: socket.socket, forks: dict[int, int]) -> None:
    while forks:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        _tell(asked, {"fork": forks.pop(pid), "returncode": os.waitstatus_to_exitcode(status)})


def _tell(asked: socket.socket, message: dict[str, int]) -> None:
    with contextlib.suppress(BrokenPipeError):  # The other side died, and this process is about to.
        asked.send(json.dumps(message).encode())


def _run(request: dict[str, Any], notify: int) -> NoReturn:
    """Runs the command line of a request as if it had been started with it."""
    os.environ["SPT_NOENV"] = "1"  # The title leaves /proc/PID/environ as it is.
    import numpy as np
    import setproctitle

    from actorlearner.cli.main import main as command
    from actorlearner.process import start_up
    from actorlearner.records.notify import NOTIFY_VARIABLE

    with open(request["log"], "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    setproctitle.setproctitle(f"{request['title']} (actorlearner)")
    os.environ[NOTIFY_VARIABLE] = str(notify)
    start_up.asked_for_at(request["asked"])
    # Forks would otherwise draw the same numbers where nothing is seeded.
    random.seed()
    np.random.seed()
    code = 1
    try:
        code = command(request["arguments"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
