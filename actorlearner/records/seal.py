"""Seals: sizes and checksums of files that belong together, written last.

A process may be killed while it writes a checkpoint, a disk may be full, a copy may be interrupted. Readers
therefore accept only files that match their seal.
"""

import contextlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from actorlearner.records.disk import write_atomically

_BLOCK = 1 << 20
_SUFFIX = ".seal.json"
_NUMBERED = re.compile(r"[a-z]+-(\d+)")


class BrokenError(Exception):
    """Sealed files do not match their seal; the message gives the difference."""


def seal_path(directory: Path, name: str) -> Path:
    """Returns the path of the seal of `name`, beside it."""
    return directory / f"{name}{_SUFFIX}"


def sealed(directory: Path) -> list[str]:
    """Returns the names of everything with a seal in a directory, complete or not, oldest first.

    The order is that of the number at the end of the name (ckpt-20, ckpt-100), or of the name as a time in
    ISO 8601, compared as an instant because a run may resume in another time zone.
    """
    return sorted((path.name.removesuffix(_SUFFIX) for path in directory.glob(f"*{_SUFFIX}")), key=_age)


def _age(name: str) -> tuple[float, str]:
    if numbered := _NUMBERED.fullmatch(name):
        return int(numbered[1]), name
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(name).timestamp(), name
    return 0.0, name


def seal(path: Path, files: Iterable[Path], facts: Mapping[str, Any]) -> None:
    """Writes the seal of files.

    Args:
      path: of the seal, beside or above the files.
      files: the sealed files, which must not change any more.
      facts: more data for readers, stored in the seal as JSON.

    Raises:
      OSError: a file cannot be read or the seal cannot be written.
    """
    described = {}
    for file in sorted(files):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
        described[str(file.relative_to(path.parent))] = {"bytes": file.stat().st_size, "crc32": _crc32(file)}
    record = {"files": described, **facts}
    write_atomically(path, json.dumps({"crc32": _crc32_of(record), "record": record}, indent=2) + "\n")


def unseal(path: Path) -> dict[str, Any]:
    """Checks sealed files, reading all of them, and returns the facts of the seal.

    Raises:
      BrokenError: the seal or a file is missing or damaged.
    """
    record = _read(path)
    for name, expected in record["files"].items():
        _check(path.parent / name, expected)
    return _facts(record)


def sealed_facts(path: Path) -> dict[str, Any]:
    """Returns the facts of a seal without checking the files.

    Raises:
      BrokenError: the seal is missing or damaged.
    """
    return _facts(_read(path))


def newest_complete(
    directory: Path,
    report_broken: Callable[[str, BrokenError], None] = lambda name, error: None,
    read: Callable[[Path], dict[str, Any]] = unseal,
) -> tuple[str, dict[str, Any]] | None:
    """Returns the name and facts of the newest complete entry; None if there is none.

    Args:
      directory: of the seals.
      report_broken: called with the name of each newer entry, and the reason why it cannot be used.
      read: `unseal`, or `sealed_facts` to skip the check of the files.
    """
    for name in reversed(sealed(directory)):
        try:
            return name, read(seal_path(directory, name))
        except BrokenError as error:
            report_broken(name, error)
    return None


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "files"}


def _read(path: Path) -> dict[str, Any]:
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        record: dict[str, Any] = written["record"]
        whole = written["crc32"] == _crc32_of(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrokenError(f"{path.name} cannot be read: {error}") from error
    if not whole:
        raise BrokenError(f"{path.name} is not what was written: its checksum differs")
    return record


def _check(file: Path, expected: Mapping[str, int]) -> None:
    try:
        size = file.stat().st_size
        if size != expected["bytes"]:
            raise BrokenError(f"{file.name} has {size:,} bytes where {expected['bytes']:,} were written")
        if _crc32(file) != expected["crc32"]:
            raise BrokenError(f"{file.name} is not what was written: its checksum differs")
    except OSError as error:
        raise BrokenError(f"{file.name} cannot be read: {error.strerror}") from error


def _crc32_of(record: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())


def _crc32(file: Path) -> int:
    checksum = 0
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum
