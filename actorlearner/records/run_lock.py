"""The lock of a run directory: one command at a time writes to it.

It is a POSIX record lock. The kernel frees it when the process ends, however it ends, and processes that are
forked from that one, as an environment does, do not keep it. It holds between hosts where the file system
supports that, as NFS does.
"""

import datetime
import errno
import fcntl
import json
import logging
import os
import platform
import sys
from pathlib import Path

_log = logging.getLogger(__name__)

_TAKEN = (errno.EACCES, errno.EAGAIN)
_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_LONGEST_HOLDER = 4096

_held: list[int] = []
"""The descriptors of all locks. They stay open: closing any descriptor of a file frees its lock."""


def take_lock(path: Path) -> str:
    """Takes a lock for as long as this process lives. Does not block.

    Args:
      path: of the lock's file, which is made if it is not there and stays there.

    Returns:
      Empty, or what holds the lock: command, process, host and since when. A file system without locks is
      logged, and counts as nobody's.

    Raises:
      OSError: the file cannot be written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(descriptor, _LONGEST_HOLDER, 0)
        os.close(descriptor)
        if error.errno in _TAKEN:
            return _describe(holder)
        if error.errno not in _UNSUPPORTED:
            raise
        _log.warning(
            "%s: this file system has no locks; see to it that one command at a time runs here", path
        )
        return ""
    _held.append(descriptor)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(_holder()).encode(), 0)
    return ""


def _holder() -> dict[str, str | int]:
    return {
        "command": " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:2]]),
        "pid": os.getpid(),
        "host": platform.node(),
        "since": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _describe(holder: bytes) -> str:
    try:
        found = json.loads(holder)
        return f"'{found['command']}', process {found['pid']} on {found['host']}, since {found['since']}"
    except (ValueError, TypeError, KeyError):  # It is only just beginning.
        return "another process"
