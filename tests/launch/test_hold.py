"""A role that refuses its configuration is not started again."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.processes import REPOSITORY

_SHOW_SIGNALS = (
    "import signal, sys; "
    "[signal.signal(n, lambda number, frame: sys.exit(number)) for n in (signal.SIGTERM, signal.SIGINT)]; "
    "print('ready', flush=True); signal.pause()"
)


@contextmanager
def _held(code: str) -> Iterator[subprocess.Popen[str]]:
    """Runs Python code under hold.py."""
    command = [sys.executable, str(REPOSITORY / "launch" / "hold.py"), sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("number"), [signal.SIGTERM, signal.SIGINT])
def test_a_refusal_ends_when_it_is_stopped(number: signal.Signals) -> None:
    with _held("raise SystemExit(2)") as process:
        assert process.stderr
        assert process.stderr.readline().startswith("refused, see above: starting it again would not help")
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(60) == 2


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("", 0),
        ("raise SystemExit(1)", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137),
    ],
)
def test_every_other_end_is_passed_on_at_once(code: str, expected: int) -> None:
    with _held(code) as process:
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_for_the_role(number: signal.Signals) -> None:
    """One that ends with 2 because of the signal (SIGINT's number) is not held."""
    with _held(_SHOW_SIGNALS) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(60) == number


_SIGNALLED_AT_ONCE = """
import os, signal, subprocess, sys
from launch import hold

class Popen(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        os.kill(os.getpid(), signal.SIGTERM)

subprocess.Popen = Popen
sys.exit(hold.main(["sleep", "1000"]))
"""


def test_a_signal_right_after_the_start_reaches_the_role() -> None:
    command = [sys.executable, "-c", _SIGNALLED_AT_ONCE]
    done = subprocess.run(command, cwd=REPOSITORY, timeout=60, check=False)
    assert done.returncode == 128 + signal.SIGTERM
