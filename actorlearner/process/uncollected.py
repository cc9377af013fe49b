"""What is made once and lasts as long as the process, kept out of the garbage collector's way."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Nothing that is made in this context is looked at by the garbage collector, then or later.

    For imports. That of TensorFlow makes half a million objects and next to no garbage; looking through them
    again and again is a quarter of the time that it takes, and half a second of every full collection
    afterwards.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()
