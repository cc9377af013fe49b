"""The lock of a run directory: only one command at a time writes to it.

It is a POSIX record lock. The kernel releases it when the process ends for any reason, and forked processes
do not inherit it. It works between hosts if the file system supports that, as NFS does.
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
"""Descriptors of all locks. They stay open, because closing a descriptor of a file releases its lock."""


def take_lock(path: Path) -> str:
    """Takes a lock until this process ends. Does not block.

    Args:
      path: of the lock file, which is created if necessary and never removed.

    Returns:
      The holder's command, process, host and start time; empty if this process has the lock now, or if the
      file system has no locks, which is logged.

    Raises:
      OSError: the lock file cannot be written.
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
            "%s: this file system has no locks; make sure that only one command at a time runs here", path
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
    except (ValueError, TypeError, KeyError):  # The holder has not written its description yet.
        return "another process"
