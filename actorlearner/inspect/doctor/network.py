"""The network between the processes of one machine."""

import socket

from actorlearner.inspect.doctor.result import Result, fail, ok
from actorlearner.inspect.doctor.subject import Subject
from actorlearner.process.ports import LOOPBACK, free_port

_TIMEOUT_S = 5.0
_MESSAGE = b"actorlearner"


def check_network(subject: Subject) -> Result:
    """Whether a process can listen on a free port, and another of this machine can connect to it.

    Raises:
      OSError: it cannot.
    """
    port = free_port()
    with (
        socket.create_server(("", port)) as server,
        socket.create_connection((LOOPBACK, port), timeout=_TIMEOUT_S) as client,
    ):
        server.settimeout(_TIMEOUT_S)
        connection, _ = server.accept()
        with connection:
            connection.settimeout(_TIMEOUT_S)
            client.sendall(_MESSAGE)
            received = connection.recv(len(_MESSAGE), socket.MSG_WAITALL)
    if received != _MESSAGE:
        return fail(f"what was sent to {LOOPBACK} did not arrive: see what filters it")
    return ok(f"port {port} was free, and {LOOPBACK} can be reached")
