"""A server's port is hidden from other machines, although the server listens on all interfaces."""

import fcntl
import socket
import struct
import subprocess
import sys

import pytest

from actorlearner.network.loopback_only import close_to_other_machines
from actorlearner.network.private_network import PrivateNetwork, RefusedError
from tests.support.processes import REPOSITORY, wait_for

_ELSEWHERE = "10.9.8.7"
_SHORT_S, _TIMEOUT_S = 0.5, 30.0


def test_only_the_loopback_interface_gets_through() -> None:
    """In a network whose interface has one more address: connections from it come from another machine."""
    try:
        network = PrivateNetwork()
    except RefusedError as error:
        pytest.skip(f"this system refuses a private network: {error}")
    done = subprocess.run(
        [sys.executable, "-m", "tests.network.test_loopback_only"],
        preexec_fn=network.enter,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=4 * _TIMEOUT_S,
    )
    network.close()
    assert done.stdout.splitlines() == ["before: served", "after: ended, no answer", "loopback: served"], (
        done.stderr
    )


def main() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(_ELSEWHERE))
        fcntl.ioctl(any_socket, 0x8916, struct.pack("16s", b"lo:1") + address)  # SIOCSIFADDR
    server = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    port = server.getsockname()[1]
    early = _connect(_ELSEWHERE, port, _TIMEOUT_S)
    accepted, _ = server.accept()
    accepted.sendall(b"x")
    print("before:", "served" if early.recv(1) == b"x" else "?")
    close_to_other_machines(port)
    ended = early.recv(1) == b""  # The connection made before is ended.

    def is_dropped() -> bool:
        try:
            _connect(_ELSEWHERE, port, _SHORT_S).close()
        except TimeoutError:
            return True
        return False

    wait_for(is_dropped, "the port to be closed")
    print("after:", "ended," if ended else "?", "no answer")
    for host in ("127.0.0.1", "::1"):
        _connect(host, port, _TIMEOUT_S).close()
    print("loopback: served")


def _connect(host: str, port: int, timeout_s: float) -> socket.socket:
    source = (host, 0) if host == _ELSEWHERE else None
    return socket.create_connection((host, port), timeout_s, source_address=source)


if __name__ == "__main__":
    main()
