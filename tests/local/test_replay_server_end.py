"""The end of the replay server: it gets time to save, and a second Ctrl-C gives up."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from actorlearner.local import supervisor
from actorlearner.local.child import Child
from actorlearner.process.stop import Stop

SAVES = """
import os, pathlib, signal, sys
allowed, saved = map(pathlib.Path, sys.argv[1:])
def save(number, frame):
    allowed.read_bytes()  # Of a pipe: blocks until somebody writes to it.
    saved.touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("serves", flush=True)
while True:
    signal.pause()
"""


class Server:
    """A process that saves when it is told to end, which takes until `finish` is called."""

    def __init__(self, path: Path) -> None:
        self._pipe, self.saved = path / "pipe", path / "saved"
        os.mkfifo(self._pipe)
        self.child = Child("replay-server", self._launch, path / "log")

    def _launch(self, writer: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", SAVES, str(self._pipe), str(self.saved)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"serves\n"
        return process

    def finish(self) -> None:
        self._pipe.write_bytes(b"go")


@pytest.fixture(name="server")
def _server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(supervisor, "_SAVING_NOTICE_S", 0.01)
    return Server(tmp_path)


def test_the_replay_server_gets_the_time_that_saving_takes(server: Server) -> None:
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        threading.Thread(target=server.finish).start()

    supervisor.end_server(server.child, Stop(), report)
    assert lines == ["saving replay; Ctrl-C gives up, and loses the transitions since the last checkpoint"]
    assert server.saved.exists()
    assert server.child.exit_code == 143


@pytest.mark.parametrize(("number", "gives_up"), [(signal.SIGINT, True), (signal.SIGHUP, False)])
def test_only_ctrl_c_gives_up_saving(server: Server, number: signal.Signals, gives_up: bool) -> None:
    stop = Stop()
    stop._handle(signal.SIGINT, None)  # What has ended the run.
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if len(lines) == 1:
            stop._handle(number, None)
            if not gives_up:
                threading.Thread(target=server.finish).start()

    supervisor.end_server(server.child, stop, report)
    assert server.saved.exists() is not gives_up
    assert server.child.exit_code == (-signal.SIGKILL if gives_up else 143)
    lost = "replay was not saved: the transitions since the last checkpoint are lost"
    assert lines[1:] == [lost] * gives_up
