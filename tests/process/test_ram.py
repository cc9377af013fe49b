"""Available memory, read from fake files of the kernel."""

from pathlib import Path

import pytest

from actorlearner.process.ram import available_bytes

MIB = 2**20
MACHINE = 4096 * MIB
UNLIMITED_V1 = 9223372036854771712


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with 4 GiB available; its processes are in no control group."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    meminfo = "MemTotal:  9000000 kB\nMemFree:   1000 kB\nMemAvailable:    4194304 kB\nBuffers:  1 kB\n"
    (tmp_path / "proc" / "meminfo").write_text(meminfo)
    (tmp_path / "cgroup").mkdir()
    return tmp_path


def belong(machine: Path, *lines: str) -> None:
    (machine / "proc" / "self" / "cgroup").write_text("".join(f"{line}\n" for line in lines))


def group(folder: Path, limit: object, usage: int, inactive: int = 0, version: int = 2) -> None:
    """Makes a control group with a memory limit."""
    names = (
        ("memory.max", "memory.current", "inactive_file")
        if version == 2
        else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(f"cache 77\n{names[2]} {inactive}\nunevictable 5\n")


def available(machine: Path) -> int:
    return available_bytes(machine / "proc", machine / "cgroup")


def test_without_control_groups_it_is_the_machine(machine: Path) -> None:
    assert available(machine) == MACHINE
    belong(machine, "0::/")
    assert available(machine) == MACHINE


def test_a_limit_of_version_2(machine: Path) -> None:
    belong(machine, "0::/user.slice/run.scope")
    folder = machine / "cgroup" / "user.slice" / "run.scope"
    group(folder, limit=1000 * MIB, usage=300 * MIB)
    assert available(machine) == 700 * MIB
    group(folder, limit=1000 * MIB, usage=300 * MIB, inactive=100 * MIB)
    assert available(machine) == 800 * MIB, "pages of files are given up when memory is short"
    group(folder, limit="max", usage=300 * MIB)
    assert available(machine) == MACHINE
    group(folder, limit=8000 * MIB, usage=0)
    assert available(machine) == MACHINE, "a limit above what the machine has"
    group(folder, limit=100 * MIB, usage=300 * MIB)
    assert available(machine) == 0


def test_the_limit_of_a_group_around_it_holds_as_well(machine: Path) -> None:
    belong(machine, "0::/user.slice/run.scope")
    group(machine / "cgroup" / "user.slice", limit=500 * MIB, usage=400 * MIB)
    group(machine / "cgroup" / "user.slice" / "run.scope", limit=1000 * MIB, usage=0)
    assert available(machine) == 100 * MIB


def test_a_limit_of_version_1(machine: Path) -> None:
    belong(machine, "12:cpu,cpuacct:/other", "4:memory:/docker/0123", "0::/")
    group(machine / "cgroup" / "memory", UNLIMITED_V1, 5000 * MIB, version=1)
    group(machine / "cgroup" / "memory" / "docker" / "0123", 600 * MIB, 300 * MIB, 50 * MIB, version=1)
    group(machine / "cgroup" / "memory" / "other", 1, 0, version=1)
    assert available(machine) == 350 * MIB


@pytest.mark.parametrize("membership", ["4:memory:/docker/0123", "4:memory:/../0123"])
def test_inside_a_container_the_root_is_its_own_group(machine: Path, membership: str) -> None:
    belong(machine, membership)
    group(machine / "cgroup" / "memory", 600 * MIB, 200 * MIB, version=1)
    group(machine / "cgroup", 1, 0, version=1)  # Outside of what is mounted.
    assert available(machine) == 400 * MIB


def test_the_real_machine() -> None:
    assert 2**24 < available_bytes() < 2**50
