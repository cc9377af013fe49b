"""Prints how the memory of each role of a long run grew, as the table in docs/benchmarks.md.

    .venv/bin/python -m benchmarks.soak RUN_DIR

After the warm-up, a straight line is fitted to one-minute means of the resident memory in the metrics. The
standard error of its slope assumes independent points. The means are nearly independent, but single records
are not: the memory of a role rises or falls over many records at a time.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from actorlearner.records.metrics import read_records
from benchmarks.support import markdown

_Column = npt.NDArray[np.float64]

_BIN_S = 60.0
_MIB = float(1 << 20)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description="Tabulates how the memory of a run's roles grew.")
    parser.add_argument("run_dir", metavar="RUN_DIR", type=Path)
    parser.add_argument(
        "--warm_up", metavar="MINUTES", type=float, default=10.0, help="left out (default: 10)"
    )
    options = parser.parse_args(arguments)
    rows = []
    for path in sorted((options.run_dir / "metrics").glob("*.jsonl")):
        records = [record for record in read_records(path) if "memory_bytes" in record]
        if not records:  # The file of best policies has none.
            continue
        times = np.array([record["time"] for record in records])
        memory = np.array([record["memory_bytes"] for record in records]) / _MIB
        try:
            mean, slope, error, minutes = growth(times, memory, options.warm_up * 60.0)
        except ValueError as refusal:
            print(f"{path.stem} is left out: {refusal}", file=sys.stderr)
            continue
        rows.append((path.stem, f"{mean:.0f}", f"{slope:+.1f} ± {error:.1f}", str(minutes)))
    for line in markdown.table(("role", "resident memory, MiB", "slope, MiB an hour", "minutes"), rows):
        print(line)
    return 0


def growth(times: _Column, memory: _Column, warm_up_s: float) -> tuple[float, float, float, int]:
    """Fits a line to what was measured `warm_up_s` after the first record and later.

    Args:
      times: in seconds, ascending.
      memory: in MiB, at these times.
      warm_up_s: what is left out.

    Returns:
      The mean in MiB, the slope in MiB an hour, its standard error, and the number of minutes.

    Raises:
      ValueError: fewer than four minutes are left.
    """
    kept = times >= times[0] + warm_up_s
    bins = ((times[kept] - times[0]) // _BIN_S).astype(int)
    minutes = np.unique(bins)
    if len(minutes) < 4:
        raise ValueError(f"{len(minutes)} minutes are left after the warm-up; a line with an error needs 4")
    means = np.array([memory[kept][bins == minute].mean() for minute in minutes])
    hours = (minutes + 0.5) * _BIN_S / 3600.0
    (slope, _), covariance = np.polyfit(hours, means, 1, cov=True)
    error = float(np.sqrt(covariance[0, 0]))
    return float(means.mean()), float(slope), error, len(minutes)


if __name__ == "__main__":
    raise SystemExit(main())
