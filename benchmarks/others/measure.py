"""Runs one training, and keeps its records in a compressed file of JSON lines."""

import contextlib
import gzip
import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from benchmarks.others import ours
from benchmarks.others.contenders import OURS, Contender
from benchmarks.others.job import Job
from benchmarks.others.libraries import REPOSITORY, runner_command
from benchmarks.support import report

Record = dict[str, Any]

SUFFIX = ".jsonl.gz"

_MEMORY_INTERVAL_S = 1.0


def measure(name: str, contender: Contender, job: Job, path: Path) -> bool:
    """Trains `job` and writes `path`: what was run, its records, and its end; returns whether it ended well.

    A file that is there is left alone, so that a broken series of rounds goes on. What a training prints on
    standard error is beside it, with the suffix .log instead of .jsonl.gz.
    """
    if path.exists():
        return True
    path.parent.mkdir(parents=True, exist_ok=True)
    source = {"commit": report.commit(), "machine": report.machine()}
    start = {"kind": "start", "time": time.time(), "contender": name, **source}
    with tempfile.TemporaryDirectory() as directory, beside(path, ".log").open("w") as log:
        run_dir = Path(directory) / "run"
        of_ours = contender.library == OURS
        command = (
            ours.command(job, contender.precision, run_dir)
            if of_ours
            else runner_command(contender.library, job.to_json())
        )
        code, printed, peak_bytes = _run(command, log)
        if code:
            with contextlib.suppress(FileNotFoundError):  # Our roles log why.
                shutil.copytree(run_dir / "logs", beside(path, ".logs"), dirs_exist_ok=True)
            return False
        records = ours.records(run_dir) if of_ours else parse(printed.splitlines())
    end = {"kind": "end", "time": time.time(), "peak_bytes": peak_bytes}
    lines = [start | {"job": json.loads(job.to_json())}, *records, end]
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    return True


def beside(path: Path, suffix: str) -> Path:
    """Returns `path` with another suffix than .jsonl.gz; its name has dots, which mislead `with_suffix`."""
    return path.with_name(path.name.removesuffix(SUFFIX) + suffix)


def parse(lines: Iterable[str]) -> list[Record]:
    """Returns the records among the lines that a runner printed; simulators print lines of their own."""
    return [json.loads(line) for line in lines if line.startswith('{"kind": ')]


def _run(command: list[str], log: Any) -> tuple[int, str, int]:
    """Blocks until it has ended; returns its exit code, its output and its greatest memory in bytes."""
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=log, text=True)
    ended = threading.Event()
    peak = [0]

    def sample() -> None:
        while not ended.wait(_MEMORY_INTERVAL_S):
            peak[0] = max(peak[0], _memory_bytes(process.pid))

    sampling = threading.Thread(target=sample)
    sampling.start()
    try:
        printed, _ = process.communicate()
    finally:
        ended.set()
        sampling.join()
        process.kill()
    return process.returncode, printed, peak[0]


def _memory_bytes(pid: int) -> int:
    """Returns the memory of a process with all below it; shared pages count once."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(psutil.Error):  # It has ended.
                total += process.memory_full_info().pss
    return total
