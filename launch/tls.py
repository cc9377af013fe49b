#!/usr/bin/env python3
"""Runs the role of a container with a TLS proxy, stunnel, beside it: plain text stays in the container.

  tls.py server ARGUMENTS...   the replay server: TLS comes in by a Unix socket, and goes on, plain, to a port
  tls.py client ARGUMENTS...   any other role: what it says to that port here goes by TLS to TLS_CONNECT

ARGUMENTS are the role's. Each end shows a certificate, and refuses one that the same authority has not
signed; a client also refuses one that is not the replay server's. The proxy is there as long as the
role, which talks while it ends. A role whose proxy has ended is ended too, so that both are started again.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from actorlearner.config.addresses import split_address

_PORT = 8008  # Where the replay server is, or seems to be; the ports of docker-compose.yml.
_SOCKET = Path("/door/replay")
# Whence the server's proxy speaks. To a client from 127.0.0.1 with a process id like its own Reverb gives the
# address of a table in its memory, to be used; and in every container the same process ids are in use.
_NOT_LOCALHOST = "127.0.0.2"
_CERTIFICATES = "/certificates"
_SERVER = "replay-server"  # The name in the server's certificate, wherever the server is.
_USAGE_ERROR = 2

_BOTH = f"""
foreground = yes
pid =
syslog = no
debug = warning
sslVersionMin = TLSv1.3
CAfile = {_CERTIFICATES}/ca.crt
cert = {_CERTIFICATES}/own.crt
key = {_CERTIFICATES}/own.key
verifyChain = yes
requireCert = yes
socket = l:SO_KEEPALIVE=1
socket = r:SO_KEEPALIVE=1

[replay]
"""


def settings(side: str, connect: str) -> str:
    """What stunnel is told.

    Args:
      side: `server` or `client`.
      connect: HOST:PORT of the replay server's TLS, for a client; unused for the server.
    """
    if side == "server":
        return f"{_BOTH}accept = {_SOCKET}\nconnect = 127.0.0.1:{_PORT}\nlocal = {_NOT_LOCALHOST}\n"
    # delay: the name is looked up at each connection, because a host may come later, or move.
    host, port = split_address(connect)  # stunnel takes an IPv6 address without brackets only.
    return (
        f"{_BOTH}client = yes\naccept = 127.0.0.1:{_PORT}\nconnect = {host}:{port}\ndelay = yes\n"
        f"checkHost = {_SERVER}\n"
    )


def beside(proxy: subprocess.Popen[Any], role: subprocess.Popen[Any]) -> int:
    """Waits until one of the two has ended, and ends the other.

    SIGTERM and SIGINT are for the role alone, which may take its time to save; blocks until it has ended.

    Returns:
      The role's exit code (128 and the signal's number, if one killed it); 1 if the proxy was first.
    """

    def pass_on(number: int, frame: FrameType | None) -> None:
        os.kill(
            role.pid, number
        )  # Not send_signal, which may collect the role before waitid sees that it ended.

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # Popen collects it.
    if ended is not None and ended.si_pid == proxy.pid:
        print(f"the TLS proxy ended, exit code {proxy.wait()}; so does the role", file=sys.stderr, flush=True)
        role.terminate()
        role.wait()
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    code = role.wait()
    proxy.terminate()
    proxy.wait()
    return code if code >= 0 else 128 - code


def main(arguments: Sequence[str]) -> int:
    """Starts the two of this container."""
    side, connect = "".join(arguments[:1]), os.environ.get("TLS_CONNECT", "")
    if side not in ("server", "client"):
        print(f"{side!r}: has to be server or client", file=sys.stderr)
        return _USAGE_ERROR
    try:
        told = settings(side, connect)
    except ValueError as error:
        print(f"TLS_CONNECT {connect!r}: has to be {error}", file=sys.stderr)
        return _USAGE_ERROR
    if side == "server":
        _SOCKET.unlink(missing_ok=True)  # Of a proxy that was killed: stunnel does not take its place.
    with subprocess.Popen(["stunnel4", "-fd", "0"], stdin=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdin is not None
        proxy.stdin.write(told)
        proxy.stdin.close()
        container = str(Path(__file__).with_name("container.py"))
        with subprocess.Popen([sys.executable, container, *arguments[1:]]) as role:
            return beside(proxy, role)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
