"""Processes that are forked where everything is imported already: what they are, and how they end."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.local.fork_server import Fork, ForkServer
from tests.support.processes import REPOSITORY, wait_for

# A replay server waits until it is told to stop.
_ROLE = ("replay-server", "--config", str(REPOSITORY / "configs" / "sac_pendulum.yaml"), "--port")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    server = ForkServer(tmp_path_factory.mktemp("logs") / "fork-server.log")
    yield server
    server.kill()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "role.log"


def version(server: ForkServer, log: Path) -> Fork:
    """Runs a command that ends by itself."""
    return server.fork("version", ["--version"], log, 2)


class Role:
    """A replay server that was forked."""

    def __init__(self, server: ForkServer, log: Path, port: int) -> None:
        self._reader, writer = os.pipe()
        arguments = [*_ROLE, str(port), "--run_dir", str(log.parents[1] / "run")]
        self.fork = server.fork("replay-server", arguments, log, writer)
        os.close(writer)

    def told(self) -> dict[str, str]:
        """Waits for what it tells next."""
        line: dict[str, str] = json.loads(os.read(self._reader, 65536).splitlines()[0])
        return line


def test_a_fork_runs_a_command_line_and_its_log_keeps_what_it_printed(server: ForkServer, log: Path) -> None:
    assert version(server, log).wait(60) == 0
    assert "actorlearner" in log.read_text()


def test_a_refused_command_line_ends_with_its_exit_code(server: ForkServer, log: Path) -> None:
    fork = server.fork("local", ["local", "--config", "no_such_file.yaml"], log, 2)
    assert fork.wait(60) == 2
    assert "no_such_file.yaml" in log.read_text()


def test_a_role_is_a_process_of_its_own(server: ForkServer, log: Path, free_port: int) -> None:
    role = Role(server, log, free_port)
    assert role.told()["state"] == "ready"
    pid = role.fork.pid
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0") == b"replay-server (actorlearner)"
    assert b"ACTORLEARNER_NOTIFY_FD" not in Path("/proc/self/environ").read_bytes()
    assert role.fork.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        role.fork.wait(0.01)
    role.fork.send_signal(signal.SIGTERM)
    assert role.fork.wait(30) == 143


def test_a_killed_fork_is_told_by_its_signal_and_others_live_on(
    server: ForkServer, log: Path, free_port: int
) -> None:
    role = Role(server, log, free_port)
    role.fork.kill()
    assert role.fork.wait(30) == -signal.SIGKILL
    assert version(server, log).wait(60) == 0


def test_forks_die_with_the_server(tmp_path: Path, log: Path, free_port: int) -> None:
    server = ForkServer(tmp_path / "fork-server.log")
    role = Role(server, log, free_port)
    pid = role.fork.pid
    server.kill()
    assert not server.alive
    assert role.fork.wait(10) == -signal.SIGKILL
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the fork to be gone")
    assert version(server, log).wait(10) == -signal.SIGKILL  # What comes too late has ended, too.


def test_a_signal_before_the_imports_are_done_ends_all(tmp_path: Path, log: Path) -> None:
    server = ForkServer(tmp_path / "fork-server.log")
    forks = [version(server, log) for _ in range(3)]
    forks[0].send_signal(signal.SIGTERM)
    assert [fork.wait(10) for fork in forks] == [-signal.SIGKILL] * 3
    with pytest.raises(ProcessLookupError):
        _ = forks[1].pid
    assert not server.alive
    assert server.failure == ""  # It was killed.


def test_files_in_the_working_directory_do_not_take_the_place_of_libraries(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise AssertionError")
    monkeypatch.chdir(tmp_path)
    server = ForkServer(tmp_path / "fork-server.log")
    assert version(server, log).wait(60) == 0
    assert server.failure == ""
    server.kill()


def test_a_library_that_cannot_be_imported_is_the_servers_failure(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reverb.py").write_text("raise ImportError('undefined symbol')")
    monkeypatch.syspath_prepend(tmp_path)
    server = ForkServer(tmp_path / "fork-server.log")
    assert version(server, log).wait(60) == -signal.SIGKILL
    assert server.failure == "exit code 1"
    assert server.log.read_text().splitlines()[-1] == "ImportError: undefined symbol"
