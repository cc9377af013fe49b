"""Reads files of one JSON object per line."""

import functools
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


def read_objects(path: Path, lines: Iterable[str]) -> list[dict[str, Any]]:
    """Returns the JSON objects in lines of the file `path`.

    Other lines, from a failed disk or two hosts that share a directory, are skipped. Each file is warned of
    once.
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
            _warn_once(path)
    return objects


@functools.cache
def _warn_once(path: Path) -> None:
    _log.warning("%s is damaged: lines that cannot be read are skipped", path)
