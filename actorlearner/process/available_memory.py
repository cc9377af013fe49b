"""How much memory this process may still take: of the machine, and of the control groups that it runs in.

A container sees the whole machine's memory in /proc/meminfo; how much of it is the container's stands in its
control group.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


class _Files(NamedTuple):
    """The files of a control group that say what its processes may use and do use."""

    limit: str
    usage: str
    reclaimable: str
    """A key of memory.stat: pages of files, which count as used and are given up when memory is short."""


_V1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = _Files("memory.max", "memory.current", "inactive_file")


def available_bytes(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int:
    """The bytes that can still be allocated without swapping, and without being killed for it.

    Args:
      proc: where the proc file system is mounted.
      cgroups: where the control groups are.

    Returns:
      The least of what the kernel reckons is available on the machine, and what each control group around
      this process (version 1 or 2) still allows.
    """
    return min([_machine(proc / "meminfo"), *_control_groups(proc / "self" / "cgroup", cgroups)])


def _machine(meminfo: Path) -> int:
    return _field(meminfo.read_text(encoding="ascii"), "MemAvailable:") * 1024


def _control_groups(membership: Path, root: Path) -> Iterator[int]:
    """What is left below the limit of each control group that has one."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:  # A kernel without control groups.
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _left(root, path, _V2)
        elif "memory" in controllers.split(","):
            yield from _left(root / "memory", path, _V1)


def _left(root: Path, path: str, files: _Files) -> Iterator[int]:
    """The same for a group and those around it: the limits of all of them hold."""
    # Inside a container the path may be that of the host, of which only the container's own part is mounted,
    # as the root. What does not exist is passed over.
    group = root.joinpath(*(part for part in path.split("/") if part not in ("", "..")))
    for folder in (group, *group.parents):
        if folder.is_relative_to(root) and (folder / files.limit).exists():
            limit = (folder / files.limit).read_text(encoding="ascii").strip()
            if limit != "max":
                used = int((folder / files.usage).read_text(encoding="ascii"))
                freed = _field((folder / "memory.stat").read_text(encoding="ascii"), files.reclaimable)
                yield max(0, int(limit) - max(0, used - freed))


def _field(text: str, key: str) -> int:
    """The number after `key` in lines of keys and numbers; 0 without such a line."""
    return next((int(line.split()[1]) for line in text.splitlines() if line.split()[:1] == [key]), 0)
