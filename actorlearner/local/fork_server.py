"""Starts roles as forks of one process that has imported what they all need.

TensorFlow and TF-Agents take a core for four seconds to import. Four roles that do so by themselves take two
cores for eight seconds before the first of them works; a fork has it all at once, and shares the memory.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from actorlearner.local.private_network import PrivateNetwork
from actorlearner.process.child_process import die_with_parent, module_command
from actorlearner.records.run_directory import RunDirectory

Options = Mapping[str, int | str | Sequence[str]]
"""The keyword arguments of a role's `run`, as JSON can hold them."""

MAX_MESSAGE_BYTES = 1 << 16
"""Of a request, and of a report about a fork."""

_FORK_TIMEOUT_S = 60.0


class ForkServer:
    """The process that forks, seen from the one that asks it to.

    It dies with this process, and the forks with it. Safe to use from several threads.
    """

    def __init__(self, log: Path, network: PrivateNetwork | None = None) -> None:
        """Starts it; does not wait for its imports, which take seconds.

        Args:
          log: where its own output goes.
          network: that it and its forks are to be in; None for the machine's own.
        """
        self.log = log
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._forks: list[Fork] = []
        log.parent.mkdir(parents=True, exist_ok=True)
        parent = os.getpid()
        with theirs, log.open("ab") as output:
            # A session of its own keeps the terminal's Ctrl-C from it: the parent decides who stops when.
            self._process = subprocess.Popen(
                module_command("actorlearner.local.forking", str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                preexec_fn=lambda: _prepare(parent, network),
            )

    @property
    def alive(self) -> bool:
        """Whether it can fork."""
        return self._process.poll() is None

    @property
    def importing(self) -> bool:
        """Whether it has not forked yet."""
        return not any(fork.forked_as for fork in self._forks)

    @property
    def failure(self) -> str:
        """Why it ended by itself before it had forked, in words; empty if it did not.

        Another one would end in the same way. One that was killed was killed by somebody.
        """
        code = self._process.poll()
        if code is None or code == -signal.SIGKILL or not self.importing:
            return ""
        return f"exit code {code}" if code > 0 else f"killed by signal {-code}"

    def fork(self, name: str, role: str, directory: RunDirectory, options: Options, notify_fd: int) -> "Fork":
        """Requests a process that runs a role in a session of its own; does not block.

        Args:
          name: of the process, and of its log.
          role: see `start_role`.
          directory: the run directory; the role's configuration is the config.yaml there.
          options: the role's own options, for `start_role`.
          notify_fd: the file descriptor to which the role reports its state.
        """
        directory.log(name).parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            fork = Fork(self)
            request = {
                "fork": len(self._forks),
                "name": name,
                "role": role,
                "run_dir": str(directory.path),
                "options": options,
                "requested_at": time.monotonic(),
            }
            self._forks.append(fork)
            with contextlib.suppress(BrokenPipeError):  # It died: the fork has ended before it began.
                socket.send_fds(self._socket, [json.dumps(request).encode()], [notify_fd])
        return fork

    def listen(self, timeout_s: float = 0.0) -> None:
        """Takes in what became of the forks; blocks for up to `timeout_s`, until there is something."""
        if not select.select([self._socket], [], [], timeout_s)[0]:
            return
        with self._lock:
            while message := self._receive():
                self._take(json.loads(message))

    def _receive(self) -> bytes:
        try:
            message = self._socket.recv(MAX_MESSAGE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""
        except ConnectionResetError:  # It died with requests unread.
            message = b""
        if not message:
            self._process.wait()
            for fork in self._forks:
                # The kernel kills what it had forked.
                fork.returncode = -signal.SIGKILL if fork.returncode is None else fork.returncode
        return message

    def _take(self, told: dict[str, Any]) -> None:
        fork = self._forks[told["fork"]]
        if "pid" in told:
            fork.forked_as = told["pid"]
        else:
            fork.returncode = told["returncode"]

    def kill(self) -> None:
        """Ends it and all forks at once, and waits for that."""
        self._process.kill()
        self._process.wait()
        self.listen()


class Fork:
    """A process that was asked for, to be used as a `subprocess.Popen`.

    Attributes:
      forked_as: its process id; None while the fork server still imports.
      returncode: as that of a Popen.
    """

    def __init__(self, server: ForkServer) -> None:
        """Not forked yet."""
        self._server = server
        self.forked_as: int | None = None
        self.returncode: int | None = None

    @property
    def pid(self) -> int:
        """Its process id, which is that of its session, too; waits for the fork.

        Raises:
          TimeoutError: the fork server did not fork within _FORK_TIMEOUT_S.
          ProcessLookupError: the fork server died before.
        """
        deadline = time.monotonic() + _FORK_TIMEOUT_S
        while self.forked_as is None and self.poll() is None:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"no fork within {_FORK_TIMEOUT_S:.0f} s; see {self._server.log}")
            self._server.listen(0.1)
        if self.forked_as is None:
            raise ProcessLookupError(f"the fork server died before it forked; see {self._server.log}")
        return self.forked_as

    def poll(self) -> int | None:
        """Returns the exit code, negative for a signal; None while it runs or is still to be forked."""
        if self.returncode is None:
            self._server.listen()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end and returns the exit code.

        Raises:
          subprocess.TimeoutExpired: it did not end within `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left_s = 1.0 if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
            self._server.listen(min(left_s, 1.0))
        return code

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended.

        While the fork server still imports, ends that server instead, and all that wait for it.
        """
        self._server.listen()
        if self._server.importing:
            self._server.kill()
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # It has ended since.
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it at once; does not wait for that."""
        self.send_signal(signal.SIGKILL)


def _prepare(parent: int, network: PrivateNetwork | None) -> None:
    """Runs in the child, between fork and exec."""
    if network is not None:
        network.enter()
    die_with_parent(parent)  # Last, because a process that enters a namespace may lose this.
