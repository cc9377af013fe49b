"""A private network, for the roles of a local run or for a replay server behind a TLS proxy.

Reverb listens on all interfaces, without authentication. In a network namespace of their own, processes have
a loopback that no other machine and no other process of this machine reaches. That needs no privileges where
the kernel allows user namespaces to everybody. Environments cannot reach any other network from there.
"""

import ctypes
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG, _PR_GET_PDEATHSIG = 1, 2
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_LOOPBACK = b"lo"
_MAKE_TIMEOUT_S = 10.0
_MADE = "made"

PRIVATE, HOST = "private", "host"
NETWORKS = (PRIVATE, HOST)

ENTER = "enter"
REFUSED_VARIABLE = "ACTORLEARNER_PRIVATE_NETWORK_REFUSED"
"""Environment variable for the program that ENTER executes: why the system refused the network, if it did."""

_OPEN = (
    "the replay server's port is open to everybody who can reach this machine: Reverb has no authentication"
)

_libc = ctypes.CDLL(None, use_errno=True)


class RefusedError(Exception):
    """The system does not allow a private network; the message gives the reason."""


def choose_network(name: str) -> tuple["PrivateNetwork | None", str]:
    """Creates a private network if `name` is PRIVATE and the system allows it.

    Returns:
      The private network, or None for the machine's own; and a line about it for the user.
    """
    if name == HOST:
        return None, f"network: {_OPEN}"
    try:
        return PrivateNetwork(), "network: private; nothing outside this run reaches the replay server"
    except RefusedError as error:
        return None, f"network: {_OPEN}; a private network is refused: {error}"


class PrivateNetwork:
    """A network namespace that child processes may enter.

    Attributes:
      namespaces: file descriptors of the namespaces, for `setns`.
    """

    def __init__(self) -> None:
        """Makes the namespace; blocks for about 0.1 s.

        Raises:
          RefusedError: the system does not allow it.
        """
        # In another process, because a process with several threads cannot make user namespaces.
        maker = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with maker:
            assert maker.stdout is not None
            if not select.select([maker.stdout], [], [], 2 * _MAKE_TIMEOUT_S)[0]:
                maker.kill()
            answer = maker.stdout.readline().strip()
            if answer != _MADE:
                raise RefusedError(answer or "the process that makes it died")
            # These open files keep the namespaces alive, without a process in them.
            self.namespaces = [
                os.open(f"/proc/{maker.pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
                for kind in ("user", "net")
                if not os.path.samefile(f"/proc/{maker.pid}/ns/{kind}", f"/proc/self/ns/{kind}")
            ]

    def enter(self) -> None:
        """Moves this process, which must have a single thread, into the network.

        Raises:
          OSError: the system does not allow it.
        """
        for namespace in self.namespaces:
            _check(_libc.setns(namespace, 0))

    def close(self) -> None:
        """Releases the network; it ends with the last process in it."""
        while self.namespaces:
            os.close(self.namespaces.pop())


def _make() -> None:
    """Moves this process into a new network with a working loopback."""
    try:
        _check(_libc.unshare(_CLONE_NEWNET))  # Preferred: file ownership stays as it is.
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _check(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", _LOOPBACK, _IFF_UP)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=_MAKE_TIMEOUT_S).close()


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _enter_and_execute(arguments: list[str]) -> NoReturn:
    """Becomes Python with these arguments, in a new network if the system allows that."""
    number = ctypes.c_int()
    _check(_libc.prctl(_PR_GET_PDEATHSIG, ctypes.byref(number)))
    try:
        PrivateNetwork().enter()  # Not `_make`, which could fail halfway, in this process.
    except (OSError, RefusedError) as error:
        os.environ[REFUSED_VARIABLE] = getattr(error, "strerror", None) or str(error)
    _check(_libc.prctl(_PR_SET_PDEATHSIG, number))  # Entering a namespace may reset it.
    os.execv(sys.executable, [sys.executable, *arguments])


def main() -> None:
    """Makes a network, prints the outcome, and stays in the network until standard input is closed."""
    if sys.argv[1:2] == [ENTER]:
        _enter_and_execute(sys.argv[2:])
    try:
        _make()
    except OSError as error:
        print(error.strerror or error, flush=True)
        return
    print(_MADE, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
