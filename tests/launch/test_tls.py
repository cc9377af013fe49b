"""A role and the proxy beside it: each command is real, but for the two that are started."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from launch import tls
from tests.support.processes import REPOSITORY, wait_for

_PROXY = """#!/bin/sh
cat >told
echo $$ >started && mv started proxy
exec sleep 1000
"""
_ROLE = """
import os, signal, sys, time
from pathlib import Path

def end(number, frame):
    Path("proxy-at-the-end").write_text(str(Path("/proc", Path("proxy").read_text().strip()).exists()))
    sys.exit(143)

signal.signal(signal.SIGTERM, end)
while not Path("proxy").exists():
    time.sleep(0.01)
Path("role").write_text(" ".join(sys.argv[1:]))
{then}
while True:
    time.sleep(0.01)
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(name="start")
def _start(tmp_path: Path) -> Iterator[Start]:
    """Starts tls.py beside a role that does something once the proxy is there."""
    shutil.copy(REPOSITORY / "launch" / "tls.py", tmp_path)
    (tmp_path / "stunnel4").write_text(_PROXY)
    (tmp_path / "stunnel4").chmod(0o755)
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, then: str = "", connect: str = "host:1") -> subprocess.Popen[str]:
        (tmp_path / "container.py").write_text(_ROLE.format(then=then))
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TLS_CONNECT": connect}
        process = subprocess.Popen(
            [sys.executable, "tls.py", *arguments],
            cwd=tmp_path,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        # The mv in the script of _PROXY may outlive it for a moment.
        wait_for(lambda process=process: not _group_exists(process.pid), "the processes to be gone")


def _group_exists(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


def _end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def _pid(proxy: Path) -> int:
    return int(wait_for(lambda: proxy.exists() and proxy.read_text(), "the proxy"))


@pytest.mark.parametrize(
    ("then", "code"),
    [("sys.exit(0)", 0), ("sys.exit(2)", 2), ("os.kill(os.getpid(), signal.SIGKILL)", 137)],
)
def test_the_end_of_the_role_is_the_end(start: Start, tmp_path: Path, then: str, code: int) -> None:
    assert _end(start("client", "learner", "--config", "c", then=then)) == (code, "")
    assert (tmp_path / "role").read_text() == "learner --config c"
    assert (tmp_path / "told").read_text() == tls.settings("client", "host:1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_role_that_is_told_to_end_has_its_proxy_until_then(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    process = start("server", "replay-server", then="signal.signal(signal.SIGINT, end)")
    wait_for(lambda: (tmp_path / "role").exists(), "the role")
    process.send_signal(number)
    assert _end(process) == (143, "")
    assert (tmp_path / "proxy-at-the-end").read_text() == "True"
    assert not Path("/proc", str(_pid(tmp_path / "proxy"))).exists()


def test_a_role_without_its_proxy_is_ended(start: Start, tmp_path: Path) -> None:
    process = start("client", "learner")
    wait_for(lambda: (tmp_path / "role").exists(), "the role")
    os.kill(_pid(tmp_path / "proxy"), signal.SIGKILL)
    assert _end(process) == (1, "the TLS proxy ended, exit code -9; so does the role\n")


@pytest.mark.parametrize(
    ("arguments", "connect", "message"),
    [
        ([], "host:1", "'': has to be server or client"),
        (["learner"], "host:1", "'learner': has to be server or client"),
        (["client", "learner"], "", "TLS_CONNECT '': has to be HOST:PORT with a port from 1 to 65535"),
        (
            ["client", "learner"],
            "host",
            "TLS_CONNECT 'host': has to be HOST:PORT with a port from 1 to 65535",
        ),
    ],
)
def test_bad_input_starts_nothing(
    start: Start, tmp_path: Path, arguments: list[str], connect: str, message: str
) -> None:
    assert _end(start(*arguments, connect=connect)) == (2, f"{message}\n")
    assert not (tmp_path / "told").exists()


def test_both_ends_want_a_certificate_and_talk_plain_on_the_loopback_interface_alone() -> None:
    server, client = (
        dict(line.split(" = ") for line in tls.settings(side, "gate:8443").splitlines() if " = " in line)
        for side in ("server", "client")
    )
    for side in (server, client):
        assert (side["verifyChain"], side["requireCert"]) == ("yes", "yes")
    assert (server["accept"], server["connect"]) == ("/door/replay", "127.0.0.1:8008")
    assert (client["accept"], client["connect"]) == ("127.0.0.1:8008", "gate:8443")
    assert client["checkHost"] == "replay-server"
    # From 127.0.0.1, a client in another container with the server's process id would be given a pointer.
    assert server["local"] == "127.0.0.2"


def test_stunnel_gets_an_ipv6_address_without_brackets() -> None:
    """With them, it looks for a host of that name."""
    assert "connect = fd00::7:8443\n" in tls.settings("client", "[fd00::7]:8443")
