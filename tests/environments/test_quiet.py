"""Silencing what simulators print."""

import ctypes
import logging
import os
import subprocess
import sys

import pytest

from actorlearner.environments.quiet import quiet_output


def speak(text: str) -> None:
    """Writes `text` in every way that a library may."""
    print(f"print {text}")
    print(f"print {text}", file=sys.stderr)
    os.write(1, f"write {text}\n".encode())
    os.write(2, f"write {text}\n".encode())
    ctypes.CDLL(None).printf(f"printf {text}\n".encode())


def test_output_is_suppressed_inside_the_context_only(capfd: pytest.CaptureFixture[str]) -> None:
    speak("before")
    with quiet_output():
        speak("meanwhile")
    speak("after")
    ctypes.CDLL(None).fflush(None)
    out, err = capfd.readouterr()
    for how, text in ((how, text) for how in ("print", "write") for text in ("before", "after")):
        assert f"{how} {text}" in out
        assert f"{how} {text}" in err
    assert "printf before" in out
    assert "printf after" in out
    assert "meanwhile" not in out + err


def test_output_comes_back_after_an_exception(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        print("meanwhile")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), quiet_output():
        fail()
    print("after")
    assert capfd.readouterr().out == "after\n"


def test_nested(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_output():
        with quiet_output():
            print("inside")
        print("between")
    print("after")
    assert capfd.readouterr().out == "after\n"


def test_logging_handler_made_meanwhile_works_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_output():
        handler = logging.StreamHandler(sys.stderr)
    handler.emit(logging.makeLogRecord({"msg": "after"}))
    assert capfd.readouterr().err == "after\n"


_DESCRIPTORS = """
import os
from actorlearner.environments.quiet import quiet_output
before = os.listdir("/proc/self/fd")
with quiet_output():
    pass
print(len(os.listdir("/proc/self/fd")) - len(before))
"""


def test_no_descriptor_is_left_open() -> None:
    """Runs in its own process: leftover threads of other tests open and close descriptors in this one."""
    output = subprocess.run([sys.executable, "-c", _DESCRIPTORS], capture_output=True, text=True, check=True)
    assert output.stdout == "0\n"


def test_text_in_the_buffers_of_c() -> None:
    """C writes its buffers later, to the standard output of that time."""
    code = (
        "import ctypes; from actorlearner.environments.quiet import quiet_output\n"
        "say = ctypes.CDLL(None).printf\n"
        "say(b'before,')\n"
        "with quiet_output(): say(b'meanwhile,')\n"
        "say(b'after')\n"
    )
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-c", code], env=buffered, capture_output=True, check=False)
    assert done.stdout == b"before,after"


def test_closed_streams() -> None:
    """The standard streams of a daemon are closed; their descriptors must be free again afterwards."""
    code = (
        "import os; from actorlearner.environments.quiet import quiet_output\n"
        "os.close(1); os.close(2)\n"
        "with quiet_output(): os.write(1, b'x') if os.path.exists('/proc/self/fd/1') else None\n"
        "os._exit(3 if any(os.path.exists(f'/proc/self/fd/{fd}') for fd in (1, 2)) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
