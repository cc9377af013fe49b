"""`startup`: seconds from the command to the first env step and to the first train step."""

import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.support.report import Row

_DEADLINE_S = 120.0
_FILES = {"first env step": "collect-0.jsonl", "first train step": "learner.jsonl"}
_GOALS = {"first env step": 10, "first train step": 20}


def run(turns: int = 3) -> tuple[list[Row], dict[str, Any]]:
    """Starts sac_halfcheetah as it is shipped in local mode, and interrupts it after its first train step.

    Args:
      turns: rounds.
    """
    details: dict[str, list[Any]] = {what: [] for what in _FILES} | {"phases": []}
    for _ in range(turns):
        seconds, phases = _start_once()
        for what in _FILES:
            details[what].append(seconds[what])
        details["phases"].append(phases)
    rows = []
    for what, goal in _GOALS.items():
        figure = statistics.median(details[what])
        rows.append(Row("startup", f"seconds to the {what}", None, figure, figure, goal, False))
    return rows, details


def _start_once() -> tuple[dict[str, float], list[str]]:
    """Returns the seconds to each first record, and the lines with the phases of each role's start."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "actorlearner", "local", "--config", "sac_halfcheetah"]
        began = time.time()
        process = subprocess.Popen(
            [*command, "--run_dir", f"{directory}/run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            metrics = Path(directory) / "run" / "metrics"
            seconds = {what: _first_record(metrics / file, process) - began for what, file in _FILES.items()}
        finally:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=30)
    return seconds, [line.strip() for line in output.decode().splitlines() if " imports " in line]


def _first_record(path: Path, process: subprocess.Popen[bytes]) -> float:
    """Waits for the first record of a metrics file; returns when it was written, in Unix seconds."""
    deadline = time.monotonic() + _DEADLINE_S
    while not (path.exists() and "\n" in path.read_text()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the run wrote nothing to {path.name} within {_DEADLINE_S:.0f} s")
        time.sleep(0.02)
    return float(json.loads(path.read_text().splitlines()[0])["time"])
