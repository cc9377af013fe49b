"""Python, the operating system and the processor."""

import platform
from pathlib import Path

from actorlearner.inspect.doctor.result import Result, fail, ok
from actorlearner.inspect.doctor.subject import Subject
from actorlearner.process.cores import cores

_SYSTEM = "Linux x86_64"
_PYTHON = "CPython 3.11"
_CPUINFO = Path("/proc/cpuinfo")


def check_platform(subject: Subject) -> Result:
    """Whether there are wheels of Reverb and TensorFlow for what runs here."""
    system = f"{platform.system()} {platform.machine()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    if system != _SYSTEM:
        return fail(f"this is {system}, but Reverb has wheels for {_SYSTEM} only: use such a machine")
    if not python.startswith(f"{_PYTHON}."):
        return fail(f"this is {python}, but Reverb's newest Python is {_PYTHON}: make .venv with that")
    if " avx " not in _CPUINFO.read_text(encoding="ascii", errors="replace").replace("\n", " "):
        return fail("the processor has no AVX, which TensorFlow's wheels need: use a newer one")
    return ok(f"{python}, {system}, {cores()} cores")
