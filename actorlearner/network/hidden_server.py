"""Hides a replay server: its process, and so Reverb's port, is in a private network.

Only the TLS proxy's socket is in the machine's network, because it was opened before. A process can change
its network only while it has a single thread, so the program is executed again to enter the network.
"""

import dataclasses
import logging
import os
import socket
import sys
from pathlib import Path

from actorlearner.network import private_network
from actorlearner.network.loopback_only import close_to_other_machines
from actorlearner.network.ports import listen
from actorlearner.network.private_network import ENTER, REFUSED_VARIABLE
from actorlearner.network.tls import open_proxy

_log = logging.getLogger(__name__)

_LISTENER_VARIABLE = "ACTORLEARNER_LISTENER"


def hide_this_process(port: int) -> None:
    """Listens on a port, then executes this program again in a private network; a no-op in that program.

    If the system refuses a private network, the program runs in the machine's network. Call this before
    starting threads: they end when the program is executed again.

    Raises:
      RunError: the port is in use, or may not be used.
    """
    if _LISTENER_VARIABLE in os.environ:
        return
    listener = listen(port)
    listener.set_inheritable(True)
    os.environ[_LISTENER_VARIABLE] = str(listener.fileno())
    python = [sys.executable, "-I", "-S", private_network.__file__, ENTER]
    os.execv(sys.executable, [*python, *sys.orig_argv[1:]])


@dataclasses.dataclass(frozen=True)
class TlsProxy:
    """The port at which a replay server accepts TLS, while Reverb's own port is hidden.

    Attributes:
      listener: a file descriptor of a socket that listens in the machine's network.
      certificate: of the run.
      refusal: why this process is not in a private network; empty if it is.
    """

    listener: int
    certificate: Path
    refusal: str = ""

    def open(self, port: int) -> None:
        """Starts forwarding connections of certificate holders to Reverb; does not block.

        Args:
          port: Reverb's own port.

        Raises:
          RunError: Reverb's port can be hidden neither in a private network nor on the loopback interface.
        """
        listener = socket.socket(fileno=self.listener)
        listener.set_inheritable(False)
        if self.refusal:
            _log.warning(
                "a private network is refused (%s): users of this machine reach replay without a certificate",
                self.refusal,
            )
            close_to_other_machines(port)
        open_proxy(listener, port, self.certificate)
        _log.info("port %d accepts TLS from holders of the run's certificate", listener.getsockname()[1])


def proxy_of_this_process(certificate: Path) -> TlsProxy:
    """Returns the proxy at the port of `hide_this_process`."""
    listener = int(os.environ.pop(_LISTENER_VARIABLE))
    return TlsProxy(listener, certificate, os.environ.pop(REFUSED_VARIABLE, ""))
