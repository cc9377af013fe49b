"""Notices a NumPy with which TensorFlow cannot be loaded; TensorFlow's own error does not name the cause."""

import importlib.metadata

from actorlearner.errors import RunError

_FIRST_WRONG = 2
_PIN = "1.26.4"  # As pyproject.toml has it; a test compares them.


def check_numpy() -> None:
    """Checks the installed NumPy without importing it.

    Raises:
      RunError: TensorFlow 2.15 and Reverb, which are compiled against NumPy 1, cannot be loaded with it.
    """
    installed = importlib.metadata.version("numpy")
    if int(installed.partition(".")[0]) >= _FIRST_WRONG:
        raise RunError(
            f"numpy {installed} is installed, but TensorFlow and Reverb need numpy=={_PIN}: pip install "
            f"numpy=={_PIN}, and from now on other packages with pip install -c requirements.lock NAME"
        )
