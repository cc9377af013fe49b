"""The console of a run: it goes on when nobody reads what it prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from actorlearner.local.train import _console
from actorlearner.records.disk import robust_stream

_QUIET = """
from actorlearner.agents.configuration import load_config
from actorlearner.local import train
from actorlearner.process.role_process import Verbosity

train.begin_run = lambda *_: None  # As of a run that has finished.
train.run_local(load_config("td3_pendulum"), {run_dir!r}, "experiment", "host", Verbosity.QUIET)
"""


@pytest.mark.parametrize("run_dir", [None, "run"])
def test_quiet_prints_only_where_a_new_run_directory_is(tmp_path: Path, run_dir: str | None) -> None:
    command = [sys.executable, "-c", _QUIET.format(run_dir=run_dir)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    new = "".join(f"run directory: {path}\n" for path in tmp_path.glob("runs/experiment-*"))
    assert done.stdout + done.stderr == new
    assert bool(new) is (run_dir is None)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_output_without_a_reader_is_dropped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C also ends the tee of `actorlearner local | tee log`."""
    reader, writer = os.pipe()
    stream = robust_stream(writer)
    monkeypatch.setattr(sys, name, stream)
    console = _console(stderr=name == "stderr")
    console.print("is read")
    assert os.read(reader, 100) == b"is read\n"
    os.close(reader)
    console.print("is lost")
    console.print("is lost as well")
    stream.close()
    os.close(writer)
