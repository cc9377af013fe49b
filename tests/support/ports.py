"""TCP ports for tests: none is given out twice, also not by processes of pytest that run side by side."""

import socket
from collections.abc import Iterator

from actorlearner.errors import RunError
from actorlearner.network.ports import check_port

_FIRST, _LAST, _PER_PROCESS = 20_000, 32_000, 1_000
"""Room for twelve processes of pytest. Ray gives its workers lower ports; Linux chooses higher ones."""


def unused_port() -> int:
    """Returns a port that nobody listens on.

    Linux may name one port to two tests before either listens on it. Reverb's servers would then share it:
    each would receive some of the other's calls.
    """
    return next(port for port in _untried if _is_unused(port))


def _own_ports() -> Iterator[int]:
    """Yields ports that no other process of pytest on this machine has: it holds a name until it ends."""
    with socket.socket(socket.AF_UNIX) as holder:
        for first in range(_FIRST, _LAST, _PER_PROCESS):
            try:
                holder.bind(f"\0actorlearner-test-ports-{first}")
            except OSError:
                continue  # Another process has it.
            yield from range(first, first + _PER_PROCESS)


_untried = _own_ports()


def _is_unused(port: int) -> bool:
    try:
        check_port(port)
    except RunError:
        return False
    return True
