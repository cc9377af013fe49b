"""Runs Python in forks of a process that has imported TensorFlow, which takes a core for five seconds.

A command is an ordinary child of the tests: it has its own session, working directory, environment, pipes and
network. Python processes that the command starts itself (local mode's fork server, the doctor's worker) are
forks of the command, for the same reason.
"""

import contextlib
import ctypes
import functools
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import setproctitle

from actorlearner.network.private_network import PrivateNetwork
from actorlearner.process.spawn import die_with_parent
from actorlearner.process.tensorflow_setup import without_gc

REPOSITORY = Path(__file__).parents[2]

MARK_VARIABLE = "ACTORLEARNER_TEST_MARK"
"""Names the test session of a process in its environment."""

NO_MARK = "0" * 32
"""The mark of the process that forks; as long as every other mark."""

_IMPORTED = (
    "actorlearner.cli.main",
    "actorlearner.local.train",
    "actorlearner.local.fork_server_main",
    "actorlearner.roles.replay_server",
    "actorlearner.roles.collect_actor",
    "actorlearner.roles.eval_actor",
    "actorlearner.roles.learner",
    # What every role would import itself when it makes its environment and its agent.
    *("gym.envs.classic_control", "keras.api._v1.keras"),
)
_MAX_REQUEST_BYTES = 1 << 17
_FORK_S = 120.0
_SET_CHILD_SUBREAPER = 36
_MODULE_COMMAND = ["-P", "-c"]
"""How the arguments of `module_command` begin, after the interpreter."""

_libc = ctypes.CDLL(None, use_errno=True)


class WarmPopen(subprocess.Popen[str]):
    """`python ARGUMENTS` without TensorFlow's import, with pipes for its output.

    The arguments begin with -m MODULE or -c CODE.
    """

    def __init__(
        self, arguments: Sequence[str], cwd: Path, environment: dict[str, str], network: PrivateNetwork | None
    ) -> None:
        """Blocks until the command is forked: milliseconds, after the first one of a test session."""
        self._network = network
        super().__init__(
            arguments,
            cwd=cwd,
            env={MARK_VARIABLE: NO_MARK} | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _execute_child(self, *started_with: Any) -> None:
        arguments, _, _, _, _, cwd, environment, _, _, _, *pipes = started_with[:16]
        read_in, _, _, write_out, _, write_err = pipes
        namespaces = [] if self._network is None else self._network.namespaces
        request = {"arguments": arguments, "cwd": str(cwd), "environment": environment, "parent": os.getpid()}
        self.pid = _server().fork(request, [read_in, write_out, write_err, *namespaces])
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


class _Server:
    """The tests' side of the process that has everything imported, which dies with them."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_FORK_S)
        parent = os.getpid()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=REPOSITORY,
                env=os.environ | {MARK_VARIABLE: NO_MARK, "PYTHONPATH": str(REPOSITORY)},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(parent),
            )

    def fork(self, request: dict[str, Any], descriptors: list[int]) -> int:
        """Forks for a request; returns the id of the new child of this process."""
        _adopt_orphans(True)
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            return int(self._socket.recv(32))
        finally:
            _adopt_orphans(False)


@functools.cache
def _server() -> _Server:
    return _Server()


def _adopt_orphans(adopts: bool) -> None:
    _libc.prctl(_SET_CHILD_SUBREAPER, int(adopts))


def main() -> None:
    """Imports what the commands need, then forks until the tests close the socket."""
    os.environ["SPT_NOENV"] = "1"
    setproctitle.getproctitle()  # It finds the memory for titles only while the environment is unchanged.
    with without_gc():
        for module in _IMPORTED:
            importlib.import_module(module)
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        request = _serve(requests)
        if request is None:
            return
        _become(requests, *request)
    flag, program = sys.argv[:2]
    sys.argv[:2] = [program if flag == "-m" else flag]
    if flag == "-m":
        _run_module(program)
    else:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})


def _serve(requests: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Returns each request in a new fork; returns None in the server at the end."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, _MAX_REQUEST_BYTES, 8)
        if not message:
            return None
        between = os.fork()
        if not between:
            if os.fork():
                os._exit(0)  # The tests adopt the fork, and wait for it as for any child.
            return json.loads(message), descriptors
        os.waitpid(between, 0)
        for descriptor in descriptors:
            os.close(descriptor)


def _become(requests: socket.socket, request: dict[str, Any], descriptors: list[int]) -> None:
    """Sets everything that the request defines for the command's process."""
    deadline = time.monotonic() + _FORK_S
    while os.getppid() != request["parent"]:
        assert time.monotonic() < deadline, "the tests have not adopted this process"
        time.sleep(0.0005)
    die_with_parent(request["parent"])
    os.setsid()
    for namespace in descriptors[3:]:
        assert _libc.setns(namespace, 0) == 0, os.strerror(ctypes.get_errno())
    _take_descriptors(descriptors[:3], keep=[requests.fileno()])
    os.chdir(request["cwd"])
    _take_environment(request["environment"])
    _write_mark(request["environment"][MARK_VARIABLE])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's background job ignores it.
    sys.argv = request["arguments"]
    sys.path[0] = request["cwd"]
    subprocess._fork_exec = functools.partial(_fork_or_exec, subprocess._fork_exec)  # type: ignore[attr-defined]
    requests.send(str(os.getpid()).encode())


def _take_descriptors(standard: Sequence[int], keep: Sequence[int]) -> None:
    """Replaces standard input, output and error (-1: unchanged), and closes all others but `keep`."""
    for number, descriptor in enumerate(standard):
        if descriptor >= 0:
            os.dup2(descriptor, number)
    kept = sorted(keep)
    for low, high in zip([2, *kept], [*kept, os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(low + 1, high)


def _take_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # From the environment again.


def _write_mark(mark: str) -> None:
    """Writes the mark into the memory that /proc/PID/environ shows: that of the initial environment."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[47]), int(fields[48])
    place = ctypes.string_at(begin, end - begin).index(f"{MARK_VARIABLE}={NO_MARK}".encode())
    assert len(mark) == len(NO_MARK)
    ctypes.memmove(begin + place + len(MARK_VARIABLE) + 1, mark.encode(), len(mark))


def _run_module(module: str) -> None:
    """Runs a module as `python -m` does."""
    import numpy as np

    np.random.seed()  # As in a new interpreter; Python's own generator is seeded at each fork.
    if "." in module:
        sys.modules.pop(module, None)  # Or runpy warns that it was imported before.
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _fork_or_exec(execute: Any, arguments: list[Any], *others: Any) -> int:
    """Replaces the function with which Popen starts processes: forks for a `module_command`."""
    words = [os.fsdecode(argument) for argument in arguments]
    if words[0] != sys.executable or words[1:3] != _MODULE_COMMAND:
        return int(execute(arguments, *others))
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _become_module(words, *others)
    return pid


def _become_module(
    words: list[str],
    executables: Any,
    close_fds: bool,
    keep: Sequence[int],
    cwd: str | None,
    environment: list[bytes] | None,
    read_in: int,
    write_in: int,
    read_out: int,
    write_out: int,
    read_err: int,
    write_err: int,
    failure_read: int,
    failure: int,
    restore_signals: bool,
    new_session: bool,
    *others: Any,
) -> None:
    """Becomes the process that Popen would have started; never returns."""
    *_, prepare, _ = others
    code = 1
    try:
        if new_session:
            os.setsid()
        _forget_signal_handlers()
        if cwd is not None:
            os.chdir(cwd)
        if prepare is not None:
            prepare()
        _take_descriptors((read_in, write_out, write_err), [each for each in keep if each != failure])
        if environment is not None:
            _take_environment(dict(os.fsdecode(each).split("=", 1) for each in environment))
        # The words are: the interpreter, -P, -c, a program with the module's name, the arguments.
        module = words[3].rpartition("run_module('")[2].partition("'")[0]
        sys.argv = [module, *words[4:]]
        _run_module(module)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _forget_signal_handlers() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    main()
