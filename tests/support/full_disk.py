"""A real disk that is small enough to be filled: a tmpfs in a mount namespace of its own."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def unshare() -> list[str]:
    """The command that gives what follows it mounts of its own; as root, or as an unprivileged user."""
    for flags in ("--mount", "--mount --user --map-root-user"):
        command = ["unshare", *flags.split()]
        probe = [*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        if (
            shutil.which("unshare")
            and subprocess.run(probe, capture_output=True, check=False).returncode == 0
        ):
            return command
    pytest.skip("this system lets us mount nothing")


def fill(disk: Path) -> Path:
    """Fills a disk to its last byte; returns the file that does."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 16, 1):  # The last page has room for single bytes only.
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"\0" * size)
    return filler


@contextlib.contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """An empty disk, until the context ends.

    Args:
      folder: where it is mounted; it has to be there.
      mebibytes: its size.
    """
    mount = f'mount -t tmpfs -o size={mebibytes}m tmpfs "$1" && echo mounted && read end'
    command = [*unshare(), "sh", "-c", mount, "sh", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"mounted\n"
        yield Path(f"/proc/{holder.pid}/root{folder}")
        holder.stdin.close()
