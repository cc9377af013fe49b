"""Damage to files: truncation, a changed bit, and a full disk."""

import errno
from pathlib import Path


def truncate(path: Path) -> None:
    """Cuts off the last ten bytes."""
    path.write_bytes(path.read_bytes()[:-10])


def corrupt(path: Path) -> None:
    """Changes a bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def no_room(*arguments: object) -> None:
    """Stands in for what writes to a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")
