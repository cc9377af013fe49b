"""Paths without special characters, for TensorFlow and Reverb."""

import functools
import os
from pathlib import Path


def plain_path(path: Path) -> str:
    """Returns another path of the same file for TensorFlow or Reverb, valid while this process lives.

    Both treat the path of a checkpoint as a pattern and find nothing below a directory with `[`, `*` or `?`
    in its name. This path uses a descriptor of the directory, which stays open because TensorFlow reads some
    values only when their variables are created. Files of one directory share a descriptor.

    Raises:
      OSError: the directory does not exist.
    """
    folder = path.parent.absolute()
    status = folder.stat()
    return f"/proc/self/fd/{_descriptor(folder, (status.st_dev, status.st_ino))}/{path.name}"


@functools.cache
def _descriptor(folder: Path, identity: tuple[int, int]) -> int:
    """Opens a directory once; `identity` differs if another directory has replaced it."""
    return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
