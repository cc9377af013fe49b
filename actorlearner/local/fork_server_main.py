"""The fork server's process: `python -m actorlearner.local.fork_server_main FD`, started by ForkServer.

Forking is safe, because the process has one Python thread and no TensorFlow threads: TensorFlow starts its
threads when it is first used.
"""

import contextlib
import json
import os
import random
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from actorlearner.agents.configuration import load_config
from actorlearner.errors import EXIT_FAILED, EXIT_USAGE, ConfigurationError, RunError, one_line
from actorlearner.local.fork_server import MAX_MESSAGE_BYTES
from actorlearner.network.hidden_server import TlsProxy
from actorlearner.process import startup_timer
from actorlearner.process.role_names import ROLES
from actorlearner.process.spawn import die_with_parent
from actorlearner.process.stop import STOP_SIGNALS
from actorlearner.process.tensorflow_setup import without_gc
from actorlearner.records.notify import NOTIFY_VARIABLE, notify
from actorlearner.records.run_directory import RunDirectory
from actorlearner.roles.start import RoleRequest, import_role, start_role

_POLL_INTERVAL_S = 0.1


def main() -> None:
    """Imports the roles, then forks one for each request until the other side closes the socket.

    Stop signals are blocked here: a job or service manager may send SIGTERM to all processes at once. The
    forks save when they get it, and would die unsaved if this process ended first.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    with without_gc():  # Otherwise each fork's garbage collector would write to, and so copy, shared memory.
        for role in ROLES:
            import_role(role)
    if (folder := os.getcwd()) not in sys.path:
        sys.path.append(folder)  # For the user's own modules; last, so that it hides no library.
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        request = _serve(requests)
    if request is not None:  # In a fork.
        _run(*request)


def _serve(requests: socket.socket) -> tuple[dict[str, Any], int] | None:
    """Forks for each request and reports the exit codes.

    Returns:
      In a fork, its request and the file descriptor for `notify`; in the server, None at the end.
    """
    forks: dict[int, int] = {}
    parent = os.getpid()
    while True:
        while forks and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            _report(requests, {"fork": forks.pop(pid), "returncode": os.waitstatus_to_exitcode(status)})
        if not select.select([requests], [], [], _POLL_INTERVAL_S)[0]:
            continue
        message, descriptors, _, _ = socket.recv_fds(requests, MAX_MESSAGE_BYTES, 1)
        if not message:
            return None
        request = json.loads(message)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            die_with_parent(parent)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
            return request, descriptors[0]
        os.close(descriptors[0])
        forks[pid] = request["fork"]
        _report(requests, {"fork": forks[pid], "pid": pid})


def _report(requests: socket.socket, message: dict[str, int]) -> None:
    with contextlib.suppress(BrokenPipeError):  # The other side died, and this process is about to.
        requests.send(json.dumps(message).encode())


def _run(request: dict[str, Any], notify_fd: int) -> NoReturn:
    """Becomes the requested role's process."""
    os.environ["SPT_NOENV"] = "1"  # The title leaves /proc/PID/environ as it is.
    import setproctitle

    name, directory = request["name"], RunDirectory(Path(request["run_dir"]))
    with directory.log(name).open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    setproctitle.setproctitle(f"{name} (actorlearner)")
    os.environ[NOTIFY_VARIABLE] = str(notify_fd)
    startup_timer.set_request_time(request["requested_at"])
    # Otherwise all forks would draw the same numbers in code that seeds nothing.
    random.seed()
    np.random.seed()
    code = EXIT_FAILED
    try:
        start_role(_role_request(request, directory))
    except ConfigurationError as error:
        print(*(f"{name}: error: {problem}" for problem in error.problems), sep="\n")
        notify("failed", str(error))
        code = EXIT_USAGE
    except RunError as error:
        print(f"{name}: error: {error}")
        notify("failed", str(error))
    except BaseException as error:
        traceback.print_exc()
        notify("crashed", one_line(error))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _role_request(request: dict[str, Any], directory: RunDirectory) -> RoleRequest:
    """Reads the configuration; raises a ConfigurationError if it is refused."""
    # Without checks: they import the user's modules, which may use TensorFlow before the role sets it up.
    config = load_config(str(directory.config))
    options = {key: tuple(x) if isinstance(x, list) else x for key, x in request["options"].items()}
    proxy = None
    if "proxy" in request:
        listener, certificate, refusal = request["proxy"]
        proxy = TlsProxy(listener, Path(certificate), refusal)
    return RoleRequest(
        request["role"],
        config,
        sources={},
        run_dir=str(directory.path),
        experiment=request["name"],
        options=options,
        proxy=proxy,
    )


if __name__ == "__main__":
    main()
