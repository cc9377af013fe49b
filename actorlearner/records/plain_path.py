"""Paths without special characters, for TensorFlow and Reverb."""

import os
from pathlib import Path


def plain_path(path: Path) -> str:
    """Returns another path of the same file for TensorFlow or Reverb, valid while this process lives.

    Both treat the path of a checkpoint as a pattern and find nothing below a directory with `[`, `*` or `?`
    in its name. This path uses a descriptor of the directory, which stays open because TensorFlow reads some
    values only when their variables are created.

    Raises:
      OSError: the directory does not exist.
    """
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{descriptor}/{path.name}"
