"""The installed packages beside those that this one was made for."""

import importlib.metadata
from collections.abc import Iterator

from packaging.requirements import Requirement

from actorlearner.inspect.doctor.result import Result, fail, ok, warn
from actorlearner.inspect.doctor.subject import Subject

_PACKAGE = "actorlearner"
_REVERB = "dm-reverb"
_TENSORFLOW = "tensorflow"
_COMPILED_TOGETHER = (_TENSORFLOW, _REVERB, "tf-agents")
_REPAIR = (
    "make setup, or pip install -r requirements.lock; other packages with pip install -c requirements.lock "
    "NAME"
)


def check_versions(subject: Subject) -> Result:
    """Whether every pin is kept, and Reverb has the TensorFlow that it was compiled against."""
    missing = [name for name in _COMPILED_TOGETHER if _installed(name) is None]
    if missing:
        return fail(f"{', '.join(missing)} not installed: {_REPAIR}")
    for needed in _requirements(_REVERB, extra=_TENSORFLOW):
        if not _is_met(needed):
            return fail(f"{_REVERB} {_installed(_REVERB)} needs {_beside(needed)}: {_REPAIR}")
    try:
        pins = list(_requirements(_PACKAGE))
    except importlib.metadata.PackageNotFoundError:
        return warn(f"{_PACKAGE} is not installed, so nobody knows what it pins: make setup")
    broken = [pin for pin in pins if not _is_met(pin)]
    if not broken:
        return ok(f"all {len(pins)} pins are kept, among them {_TENSORFLOW} {_installed(_TENSORFLOW)}")
    # Other versions of the others may well work, but were not tried.
    grave = any(pin.name in _COMPILED_TOGETHER or _installed(pin.name) is None for pin in broken)
    found = f"{', '.join(map(_beside, broken))}: {_REPAIR}"
    return fail(found) if grave else warn(found)


def _requirements(package: str, extra: str = "") -> Iterator[Requirement]:
    """What an installed package requires here, with an extra of it."""
    for text in importlib.metadata.requires(package) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _is_met(requirement: Requirement) -> bool:
    installed = _installed(requirement.name)
    return installed is not None and requirement.specifier.contains(installed, prereleases=True)


def _beside(requirement: Requirement) -> str:
    """A requirement, with what is installed instead."""
    return f"{requirement.name}{requirement.specifier} (here: {_installed(requirement.name) or 'none'})"


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
