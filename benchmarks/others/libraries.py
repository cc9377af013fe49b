"""The other libraries, each in an environment of its own below build/others."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

LIBRARIES = ("rllib", "sb3", "sbx")
"""Each has NAME.txt here, its exact versions, and runners/NAME_runner.py."""

_FOLDER = REPOSITORY / "build" / "others"


def python(library: str) -> Path:
    """Returns the interpreter of a library's environment, which need not be there."""
    return _FOLDER / library / "bin" / "python"


def is_installed(library: str) -> bool:
    """Returns whether the library's environment has been made."""
    return python(library).exists()


def install_commands(library: str) -> list[list[str]]:
    """Returns the commands that make a library's environment."""
    requirements = Path(__file__).parent / f"{library}.txt"
    return [
        ["uv", "venv", "--python", "3.11", "--allow-existing", str(_FOLDER / library)],
        ["uv", "pip", "install", "--python", str(python(library)), "--requirements", str(requirements)],
    ]


def runner_command(library: str, job: str) -> list[str]:
    """Returns the command that trains; `job` is one of `Job.to_json`."""
    return [str(python(library)), "-m", f"benchmarks.others.runners.{library}_runner", job]
