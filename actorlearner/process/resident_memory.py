"""How much memory a role holds, for its metrics."""

import os


def resident_bytes() -> int:
    """The resident set of this process, from /proc."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
