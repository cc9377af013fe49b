"""TCP ports for tests: none is given out twice, also not by processes of pytest that run side by side."""

import os

from actorlearner.errors import RunError
from actorlearner.network.ports import check_port

_FIRST, _PER_WORKER = 20_000, 1_000
"""Room for twelve workers of pytest-xdist. Ray gives its workers lower ports; Linux chooses higher ones."""

_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_untried = iter(range(_FIRST + _worker * _PER_WORKER, _FIRST + (_worker + 1) * _PER_WORKER))


def unused_port() -> int:
    """Returns a port that nobody listens on.

    Linux may name one port to two tests before either listens on it. Reverb's servers would then share it:
    each would receive some of the other's calls.
    """
    return next(port for port in _untried if _is_unused(port))


def _is_unused(port: int) -> bool:
    try:
        check_port(port)
    except RunError:
        return False
    return True
