"""Keeps the output of libraries out of a command's own output."""

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import TextIO

from actorlearner.environments.quiet import quiet_output
from actorlearner.process.stop import exit_at_sigterm
from actorlearner.records.disk import robust_stream


@contextlib.contextmanager
def own_output() -> Iterator[TextIO]:
    """Context manager that yields standard output and discards everything else that the process prints.

    TensorFlow and simulators print, also from C++. Warnings of this package go to standard error. From now on
    SIGTERM raises SystemExit.
    """
    exit_at_sigterm()
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
