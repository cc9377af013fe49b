"""Replaces a directory by another, so that readers always find one."""

import ctypes
import os
import shutil
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def replace_directory(fresh: Path, target: Path, stale: Path) -> None:
    """Moves `fresh` to `target` and removes the directory that was there.

    If the file system can exchange two directories (all local ones of Linux can), `target` exists at any
    moment. Otherwise a killed process may leave the old directory at `stale`, see `restore_directory`.

    Args:
      fresh: the new directory.
      target: the final path, which need not exist.
      stale: an unused path beside the others.

    Raises:
      OSError: a directory cannot be moved.
    """
    if target.exists() and not _exchange(fresh, target):
        target.rename(stale)
    if not target.exists():
        fresh.rename(target)
    for left in (fresh, stale):
        shutil.rmtree(left, ignore_errors=True)


def restore_directory(target: Path, stale: Path) -> None:
    """Moves the old directory back if a process was killed while it replaced it.

    Raises:
      OSError: the directory cannot be moved.
    """
    if stale.exists() and not target.exists():
        stale.rename(target)


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two paths atomically; returns whether it succeeded."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0
