"""Hides a replay server: its process is in a network of its own, where Reverb's port is.

Only the gate's socket, which was opened before, is in the machine's network. A process can change its network
only while it has a single thread, and so it executes itself again.
"""

import logging
import os
import socket
import sys
from pathlib import Path

from actorlearner.network import private_network
from actorlearner.network.loopback_only import close_to_other_machines
from actorlearner.network.ports import check_port, free_port
from actorlearner.network.private_network import ENTER, REFUSED_VARIABLE
from actorlearner.network.tls import open_gate

_log = logging.getLogger(__name__)

_LISTENER_VARIABLE = "ACTORLEARNER_LISTENER"


def hide_this_process(port: int) -> None:
    """Listens on a port, then executes this program again in a private network; there, returns at once.

    To be called before anything starts a thread that matters.

    Raises:
      RunError: the port is in use, or may not be used.
    """
    if _LISTENER_VARIABLE in os.environ:
        return
    check_port(port)
    listener = _listen(port)
    listener.set_inheritable(True)
    os.environ[_LISTENER_VARIABLE] = str(listener.fileno())
    python = [sys.executable, "-I", "-S", private_network.__file__, ENTER]
    os.execv(sys.executable, [*python, *sys.orig_argv[1:]])


def open_hidden_gate(certificate: Path) -> int:
    """Lets holders of the certificate in at the port of `hide_this_process`; returns the port for Reverb."""
    listener = socket.socket(fileno=int(os.environ.pop(_LISTENER_VARIABLE)))
    listener.set_inheritable(False)
    port = free_port()
    if refusal := os.environ.pop(REFUSED_VARIABLE, ""):
        _log.warning(
            "a private network is refused (%s): other machines need the certificate, this one's users do not",
            refusal,
        )
        close_to_other_machines(port)
    open_gate(listener, port, certificate)
    _log.info("port %d takes TLS, of holders of the run's certificate alone", listener.getsockname()[1])
    return port


def _listen(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=512, dualstack_ipv6=True)
    return socket.create_server(("", port), backlog=512)
