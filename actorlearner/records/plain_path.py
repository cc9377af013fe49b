"""Paths that TensorFlow and Reverb read as they are."""

import os
from pathlib import Path


def plain_path(path: Path) -> str:
    """Returns another path to the same file, for TensorFlow or Reverb to use while this process lives.

    Both take the path of what they restore for a pattern: below a directory whose name has
    `[`, `*` or `?` in it, it finds nothing. This path leads through a descriptor of the directory. The
    descriptor stays open, because TensorFlow reads some values only when their variables are made.

    Raises:
      OSError: there is no such directory.
    """
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{descriptor}/{path.name}"
