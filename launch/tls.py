#!/usr/bin/env python3
"""Runs a container's role together with a TLS proxy, stunnel: plain text never leaves the container.

  tls.py server ARGUMENTS...   the replay server: stunnel forwards TLS from a Unix socket to the server's port
  tls.py client ARGUMENTS...   any other role: stunnel forwards the same port here by TLS to TLS_CONNECT

ARGUMENTS are the role's. Both ends show a certificate, and refuse one that the same authority has not signed;
a client also refuses any certificate but the replay server's. The proxy outlives the role, which communicates
until its end. If the proxy ends first, the role is ended too, so that both are restarted.
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

_PORT = 8008  # Of the replay server, or of the proxy in its place; as in docker-compose.yml.
_SOCKET = Path("/door/replay")
# The source address of the server's proxy. To a client at 127.0.0.1 with the server's own process id, Reverb
# returns a pointer to a table in its memory; and containers use the same process ids.
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
    """Returns the configuration of stunnel.

    Args:
      side: `server` or `client`.
      connect: HOST:PORT of the replay server's proxy, for a client; unused for the server.
    """
    if side == "server":
        return f"{_BOTH}accept = {_SOCKET}\nconnect = 127.0.0.1:{_PORT}\nlocal = {_NOT_LOCALHOST}\n"
    # delay: resolves the name at each connection, because the host may come later, or move.
    host, port = split_address(connect)  # stunnel takes an IPv6 address without brackets only.
    return (
        f"{_BOTH}client = yes\naccept = 127.0.0.1:{_PORT}\nconnect = {host}:{port}\ndelay = yes\n"
        f"checkHost = {_SERVER}\n"
    )


def beside(proxy: subprocess.Popen[Any], role: subprocess.Popen[Any]) -> int:
    """Blocks until the proxy or the role has ended, and ends the other.

    Forwards SIGTERM and SIGINT to the role alone, which may take a while to save.

    Returns:
      The role's exit code (128 plus the signal's number, if one killed it); 1 if the proxy ended first.
    """

    def pass_on(number: int, frame: FrameType | None) -> None:
        # Not send_signal, which may reap the role before waitid sees its end.
        os.kill(role.pid, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # Popen reaps it.
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
    """Starts this container's role and its proxy."""
    side, connect = "".join(arguments[:1]), os.environ.get("TLS_CONNECT", "")
    if side not in ("server", "client"):
        print(f"{side!r}: has to be server or client", file=sys.stderr)
        return _USAGE_ERROR
    try:
        configuration = settings(side, connect)
    except ValueError as error:
        print(f"TLS_CONNECT {connect!r}: has to be {error}", file=sys.stderr)
        return _USAGE_ERROR
    if side == "server":
        _SOCKET.unlink(missing_ok=True)  # Left by a killed proxy; stunnel does not replace it.
    with subprocess.Popen(["stunnel4", "-fd", "0"], stdin=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdin is not None
        proxy.stdin.write(configuration)
        proxy.stdin.close()
        container = str(Path(__file__).with_name("container.py"))
        with subprocess.Popen([sys.executable, container, *arguments[1:]]) as role:
            return beside(proxy, role)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
