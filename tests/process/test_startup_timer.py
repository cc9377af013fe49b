"""The phases of a role's start."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from actorlearner.process import startup_timer
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.records.notify import NOTIFY_VARIABLE


def test_phases_are_reported_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(startup_timer, "_process_age_s", lambda: 2.0)
    monkeypatch.setattr(startup_timer.time, "monotonic", lambda: now)
    starting = StartupTimer()
    now = 101.5
    starting.ended("environments")
    now = 104.5
    starting.ended("replay server")
    reader, writer = os.pipe()
    monkeypatch.setenv(NOTIFY_VARIABLE, str(writer))
    starting.report("ready")
    reported = json.loads(os.read(reader, 1000))
    assert reported == {"state": "ready", "message": "imports 2.0 s, environments 1.5 s, replay server 3.0 s"}


def test_the_first_phase_begins_with_the_process() -> None:
    began = time.monotonic()
    program = (
        "from actorlearner.process.startup_timer import StartupTimer; import time; time.sleep(0.5); "
        "print(StartupTimer())"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    (seconds,) = re.findall(r"imports (\d+\.\d) s", output)
    assert 0.5 <= float(seconds) <= time.monotonic() - began + 0.1
