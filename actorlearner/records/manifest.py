"""The contents of a run's manifest: who started the run when, how, and with which versions."""

import datetime
import importlib.metadata
import os
import platform
import sys
import uuid
from collections.abc import Mapping
from typing import Any

from actorlearner.config.resolved import fingerprint
from actorlearner.config.schema import Config

_PACKAGES = ("actorlearner", "tensorflow", "tf-agents", "dm-reverb", "numpy", "gym", "pybullet")


def new_run_id() -> str:
    """Returns an id that no other run has."""
    return uuid.uuid4().hex[:12]


def new_manifest(config: Config, run_id: str | None) -> dict[str, Any]:
    """Returns the manifest of a run that this process starts; see `RunDirectory.run_id`."""
    return {
        "run_id": run_id,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "fingerprint": fingerprint(config),
        "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]],
        "host": platform.node(),
        "python": platform.python_version(),
        "versions": {package: installed_version(package) for package in _PACKAGES},
    }


def created_at(manifest: Mapping[str, Any]) -> float | None:
    """Returns the Unix time at which a run was started; None if its manifest has no creation time."""
    try:
        return datetime.datetime.fromisoformat(manifest["created"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None


def installed_version(package: str) -> str | None:
    """Returns the version of a package; None if it is not installed, as this one in a bare checkout."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
