"""What comes before and around an import of TensorFlow."""

import contextlib
import gc
import importlib.metadata
from collections.abc import Iterator

from actorlearner.errors import RunError

_PIN = "1.26.4"  # As in pyproject.toml; a test compares them.


def check_numpy() -> None:
    """Checks the installed NumPy without importing it; TensorFlow's own error does not name the cause.

    Raises:
      RunError: it is NumPy 2, and TensorFlow 2.15 and Reverb are compiled against NumPy 1.
    """
    installed = importlib.metadata.version("numpy")
    if int(installed.partition(".")[0]) >= 2:
        raise RunError(
            f"numpy {installed} is installed, but TensorFlow and Reverb need numpy=={_PIN}: pip install "
            f"numpy=={_PIN}, and from now on other packages with pip install -c requirements.lock NAME"
        )


@contextlib.contextmanager
def without_gc() -> Iterator[None]:
    """Hides all objects made in this context from the garbage collector, for good.

    For imports: TensorFlow's makes half a million objects and next to no garbage. Scanning them again and
    again takes a quarter of the import's time, and half a second of every full collection afterwards.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
