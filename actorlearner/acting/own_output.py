"""Keeps a command's output in the terminal free of the output of libraries."""

import contextlib
import logging
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import TextIO

from actorlearner.environments.quiet import quiet_output
from actorlearner.errors import EXIT_TERMINATED
from actorlearner.records.disk import robust_stream


@contextlib.contextmanager
def own_output() -> Iterator[TextIO]:
    """Context manager that yields standard output and discards everything else that the process prints.

    TensorFlow and simulators print, also from C++. Warnings of this package go to standard error. From now on
    SIGTERM raises SystemExit, so that partial files are removed.
    """
    signal.signal(signal.SIGTERM, _terminate)
    out, err = os.dup(1), os.dup(2)
    handler = logging.StreamHandler(robust_stream(err))
    handler.setLevel(logging.WARNING)
    package = logging.getLogger("actorlearner")
    package.addHandler(handler)
    try:
        with quiet_output():
            yield robust_stream(out)
    finally:
        package.removeHandler(handler)
        os.close(out)
        os.close(err)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(EXIT_TERMINATED)
