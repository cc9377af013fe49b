"""A command that works in the user's terminal with libraries that print there, too."""

import contextlib
import logging
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import TextIO

from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import EXIT_TERMINATED
from actorlearner.records.disk import lasting


@contextlib.contextmanager
def own_output() -> Iterator[TextIO]:
    """Yields standard output to this command alone; what else the process prints meanwhile is discarded.

    That are TensorFlow and simulators, in C++ as well. Warnings of this package go to standard error. SIGTERM
    raises a SystemExit from now on, so that what has been begun is cleared away.
    """
    signal.signal(signal.SIGTERM, _terminate)
    out, err = os.dup(1), os.dup(2)
    handler = logging.StreamHandler(lasting(err))
    handler.setLevel(logging.WARNING)
    package = logging.getLogger("actorlearner")
    package.addHandler(handler)
    try:
        with quiet_output():
            yield lasting(out)
    finally:
        package.removeHandler(handler)
        os.close(out)
        os.close(err)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(EXIT_TERMINATED)
