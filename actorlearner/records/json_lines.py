"""Reading files of one JSON object a line."""

import functools
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


def read_objects(path: Path, lines: Iterable[str]) -> list[dict[str, Any]]:
    """The objects in lines of a file. Lines that are none are left out, and said to be once for the file.

    A disk that failed, or two hosts that share a directory, may have spoilt them.
    """
    objects = []
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            objects.append(value)
        else:
            _complain(path)
    return objects


@functools.cache
def _complain(path: Path) -> None:
    _log.warning("%s: spoilt; lines of it that cannot be read are left out", path)
