"""Checks whether a path can be a directory, before anything is written."""

import os
import stat

_LONGEST_NAME = 255  # Of a file, in bytes, on any file system of Linux.
_LONGEST_PATH = 3_800  # The limit of Linux, less the longest path inside a run directory.


def obstacle(path: str) -> str:
    """Returns why `path` cannot be used as a directory or created as one; empty if it can."""
    if not path:
        return "it is empty"
    if any(len(os.fsencode(name)) > _LONGEST_NAME for name in path.split(os.sep)):
        return f"a name is longer than {_LONGEST_NAME} bytes"
    there = os.path.abspath(path)
    if len(os.fsencode(there)) > _LONGEST_PATH:
        return f"it is longer than {_LONGEST_PATH} bytes"
    while not os.path.lexists(there):  # The nearest existing ancestor must be a directory.
        there = os.path.dirname(there)
    try:
        if stat.S_ISDIR(os.stat(there).st_mode):
            return ""
    except OSError as error:  # A broken or circular link.
        return f"{there}: {error.strerror}"
    return f"{there} is not a directory"
