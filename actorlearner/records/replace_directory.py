"""Replacing a directory by another one, so that there is always one in its place."""

import ctypes
import os
import shutil
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def replace_directory(fresh: Path, target: Path, stale: Path) -> None:
    """Moves `fresh` to `target`; what was there is removed.

    Where the file system can exchange two directories (all local ones of Linux), there is one at `target`
    at any moment. On others, a process that is killed may leave it at `stale`: see `restore_directory`.

    Args:
      fresh: the new directory.
      target: where it belongs; there need not be one.
      stale: a path beside them where there is nothing.

    Raises:
      OSError: it cannot be moved.
    """
    if target.exists() and not _exchange(fresh, target):
        target.rename(stale)
    if not target.exists():
        fresh.rename(target)
    for left in (fresh, stale):
        shutil.rmtree(left, ignore_errors=True)


def restore_directory(target: Path, stale: Path) -> None:
    """Moves a directory back that a process was killed over replacing.

    Raises:
      OSError: it cannot be moved.
    """
    if stale.exists() and not target.exists():
        stale.rename(target)


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two paths in one step; returns whether the system can."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0
