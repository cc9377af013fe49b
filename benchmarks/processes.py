"""The resources used by another process, from /proc."""

import os
from pathlib import Path


class MeasuredProcess:
    """A process that runs."""

    def __init__(self, pid: int) -> None:
        """Knows it by its process id."""
        self.pid = pid

    @property
    def resident_bytes(self) -> int:
        """The memory that it holds, with what it shares."""
        return self._kibibytes("status", "VmRSS:") * 1024

    @property
    def proportional_bytes(self) -> int:
        """The memory that it holds, with its part of what it shares."""
        return self._kibibytes("smaps_rollup", "Pss:") * 1024

    @property
    def cpu_s(self) -> float:
        """CPU seconds that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _kibibytes(self, file: str, key: str) -> int:
        lines = Path(f"/proc/{self.pid}/{file}").read_text().splitlines()
        (kibibytes,) = (line.split()[1] for line in lines if line.startswith(key))
        return int(kibibytes)
