"""Starts roles as forks of one process, the fork server, which has imported TensorFlow and the roles.

This module is its client; fork_server_main.py is the program that it runs.

Importing TensorFlow and TF-Agents takes four seconds of a core. If four roles imported by themselves, the
first would be ready after eight seconds on two cores. Forks share the imported modules, and their memory.

Python's own fork server (multiprocessing) is unsuitable: starting a process blocks during the imports, failed
imports are ignored, and it runs in the terminal's session, so a hang-up kills it and its forks unsaved.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from actorlearner.network.hidden_server import TlsProxy
from actorlearner.network.private_network import PrivateNetwork
from actorlearner.process.role_names import REPLAY_SERVER
from actorlearner.process.spawn import die_with_parent, module_command
from actorlearner.records.run_directory import RunDirectory

Options = Mapping[str, int | str | Sequence[str]]
"""The keyword arguments of a role's `run`, as JSON can hold them."""

MAX_MESSAGE_BYTES = 1 << 16
"""The largest request to the fork server, and the largest report about a fork."""

_POLL_INTERVAL_S = 0.02


class ForkServer:
    """A fork server, which dies with this process; the forks die with the fork server."""

    def __init__(
        self, log: Path, network: PrivateNetwork | None = None, proxy: TlsProxy | None = None
    ) -> None:
        """Starts the fork server; does not wait for its imports, which take seconds.

        Args:
          log: the file for the fork server's own output.
          network: the network of the fork server and of its forks; None for the machine's own.
          proxy: the port at which replay servers accept TLS; None for plain text.
        """
        self.log = log
        self._proxy = proxy
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._forks: list[Fork] = []
        log.parent.mkdir(parents=True, exist_ok=True)
        parent = os.getpid()

        def prepare() -> None:
            if network is not None:
                network.enter()
            die_with_parent(parent)  # Last, because entering a namespace may reset it.

        with theirs, log.open("ab") as output:
            # In a session of its own, so that the terminal's Ctrl-C reaches only the parent, which decides
            # when each role stops.
            self._process = subprocess.Popen(
                module_command("actorlearner.local.fork_server_main", str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno(), *([] if proxy is None else [proxy.listener])],
                start_new_session=True,
                preexec_fn=prepare,
            )

    @property
    def alive(self) -> bool:
        """True while the fork server runs."""
        return self._process.poll() is None

    @property
    def importing(self) -> bool:
        """True until the first fork: the fork server still imports."""
        return not any(fork.forked_as for fork in self._forks)

    @property
    def failure(self) -> str:
        """Why the fork server failed before its first fork; empty if it did not.

        Another fork server would fail in the same way. A SIGKILL is no failure: it was sent from outside.
        """
        code = self._process.poll()
        if code is None or code == -signal.SIGKILL or not self.importing:
            return ""
        return f"exit code {code}" if code > 0 else f"killed by signal {-code}"

    def fork(self, name: str, role: str, directory: RunDirectory, options: Options, notify_fd: int) -> "Fork":
        """Requests a process that runs a role in a session of its own; does not block.

        Args:
          name: of the process, and of its log.
          role: the role, see `RoleRequest`.
          directory: the run directory, whose config.yaml is the role's configuration.
          options: the keyword arguments of the role's `run`.
          notify_fd: the file descriptor to which the role reports its state.
        """
        directory.log(name).parent.mkdir(parents=True, exist_ok=True)
        request = {
            "fork": len(self._forks),
            "name": name,
            "role": role,
            "run_dir": str(directory.path),
            "options": options,
            "requested_at": time.monotonic(),
        }
        if self._proxy is not None and role == REPLAY_SERVER:
            request["proxy"] = [self._proxy.listener, str(self._proxy.certificate), self._proxy.refusal]
        self._forks.append(Fork(self))
        with contextlib.suppress(BrokenPipeError):  # The fork server died; `Fork.poll` reports that.
            socket.send_fds(self._socket, [json.dumps(request).encode()], [notify_fd])
        return self._forks[-1]

    def receive(self) -> None:
        """Updates the forks from the reports that have arrived; does not block."""
        try:
            while message := self._socket.recv(MAX_MESSAGE_BYTES, socket.MSG_DONTWAIT):
                report = json.loads(message)
                fork = self._forks[report["fork"]]
                fork.forked_as = report.get("pid", fork.forked_as)
                if "returncode" in report:
                    fork.end(report["returncode"])
        except BlockingIOError:
            return
        except ConnectionResetError:  # The fork server died with unread requests.
            pass
        self._process.wait()
        for fork in self._forks:
            if fork.returncode is None:
                fork.end(-signal.SIGKILL)  # The kernel kills the forks when the fork server dies.

    def kill(self) -> None:
        """Kills the fork server and with it all forks; waits for the end of the server."""
        self._process.kill()
        self._process.wait()
        self.receive()


class Fork:
    """A requested process, with some methods of a `subprocess.Popen`.

    Attributes:
      forked_as: the process id; None while the fork server still imports.
      returncode: as in `subprocess.Popen`.
    """

    def __init__(self, server: ForkServer) -> None:
        """Represents a process that is about to be requested from `server`."""
        self._server = server
        self.forked_as: int | None = None
        self.returncode: int | None = None

    def end(self, returncode: int) -> None:
        """Records that the process has ended, and kills the processes that its environments have left."""
        self.returncode = returncode
        if self.forked_as is not None:
            # None are left, or they belong to other users.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.forked_as, signal.SIGKILL)

    @property
    def pid(self) -> int:
        """The id of the process and of its session; blocks until it is forked.

        Raises:
          ProcessLookupError: the fork server died before.
        """
        while self.poll() is None and self.forked_as is None:
            time.sleep(_POLL_INTERVAL_S)
        if self.forked_as is None:
            raise ProcessLookupError(f"the fork server died before it forked; see {self._server.log}")
        return self.forked_as

    def poll(self) -> int | None:
        """Returns the exit code, negative for a signal; None while the process runs or is not forked yet."""
        if self.returncode is None:
            self._server.receive()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless the process has ended.

        While the fork server still imports, this kills the server instead, and so all its forks.
        """
        self._server.receive()
        if self._server.importing:
            self._server.kill()
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # It has just ended.
                os.kill(self.pid, number)
