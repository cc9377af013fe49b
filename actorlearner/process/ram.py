"""The RAM that this process holds, and the RAM that it may still allocate.

A container sees the memory of the whole machine in /proc/meminfo; its own limit is in its control group.
"""

import os
from collections.abc import Iterator
from pathlib import Path

# The files of a control group with its limit and its usage, and the key in its memory.stat of file pages that
# count as used, although the kernel frees them when memory is short.
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = ("memory.max", "memory.current", "inactive_file")


def resident_bytes() -> int:
    """Returns the resident set size of this process."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def available_bytes(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Returns the bytes that can be allocated without swapping and without an out-of-memory kill.

    That is the minimum of the machine's available memory and of what is left below the limit of each
    enclosing control group (version 1 or 2). The arguments are the mount points of both file systems.
    """
    machine = _field((proc / "meminfo").read_text(encoding="ascii"), "MemAvailable:") * 1024
    return min([machine, *_left_in_groups(proc / "self" / "cgroup", cgroups)])


def _left_in_groups(membership: Path, root: Path) -> Iterator[int]:
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


def _left(root: Path, path: str, files: tuple[str, str, str]) -> Iterator[int]:
    """Yields the unused bytes of a control group, and of each enclosing one, that has a limit."""
    limit_file, usage_file, reclaimable = files
    # Inside a container, the path may be the host's, while only the container's part is mounted, as the root.
    # Folders that do not exist are skipped.
    group = root.joinpath(*(part for part in path.split("/") if part not in ("", "..")))
    for folder in (group, *group.parents):
        if folder.is_relative_to(root) and (folder / limit_file).exists():
            limit = (folder / limit_file).read_text(encoding="ascii").strip()
            if limit != "max":
                used = int((folder / usage_file).read_text(encoding="ascii"))
                freed = _field((folder / "memory.stat").read_text(encoding="ascii"), reclaimable)
                yield max(0, int(limit) - max(0, used - freed))


def _field(text: str, key: str) -> int:
    """Returns the number after `key` in lines of keys and numbers; 0 without such a line."""
    return next((int(line.split()[1]) for line in text.splitlines() if line.split()[:1] == [key]), 0)
