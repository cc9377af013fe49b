"""Forks of a process that has imported everything: their properties and their ends."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.local.fork_server import Fork, ForkServer
from actorlearner.records.run_directory import RunDirectory
from tests.support.processes import wait_for


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    server = ForkServer(tmp_path_factory.mktemp("logs") / "fork-server.log")
    yield server
    server.kill()


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


def refused(server: ForkServer, directory: RunDirectory) -> Fork:
    """Forks a role that ends by itself: its run directory holds no configuration."""
    empty = RunDirectory(directory.path.parent / "empty")
    return server.fork("eval-actor", "eval-actor", empty, {"replay_address": ["a:1"]}, 2)


class Role:
    """A forked replay server, which serves until it is stopped."""

    def __init__(self, server: ForkServer, directory: RunDirectory, port: int) -> None:
        directory.prepare(load_config("sac_pendulum"))
        self._reader, writer = os.pipe()
        self.fork = server.fork("replay-server", "replay-server", directory, {"port": port}, writer)
        os.close(writer)

    def report(self) -> dict[str, str]:
        """Waits for the next report."""
        line: dict[str, str] = json.loads(os.read(self._reader, 65536).splitlines()[0])
        return line


def test_a_fork_without_a_configuration_exits_with_2_and_logs_why(
    server: ForkServer, directory: RunDirectory
) -> None:
    assert refused(server, directory).wait(60) == 2
    empty = RunDirectory(directory.path.parent / "empty")
    assert str(empty.config) in empty.log("eval-actor").read_text()


def test_a_refused_configuration_is_reported(server: ForkServer, directory: RunDirectory) -> None:
    directory.path.mkdir()
    directory.config.write_text("learn: {batch_size: -1}")
    reader, writer = os.pipe()
    options = {"replay_address": ["a:1"]}
    assert server.fork("learner", "learner", directory, options, writer).wait(60) == 2
    os.close(writer)
    report = json.loads(os.read(reader, 65536).splitlines()[0])
    assert report["state"] == "failed"
    assert "learn.batch_size" in report["message"]


def test_a_role_is_a_process_of_its_own(server: ForkServer, directory: RunDirectory, free_port: int) -> None:
    role = Role(server, directory, free_port)
    assert role.report()["state"] == "ready"
    pid = role.fork.pid
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0") == b"replay-server (actorlearner)"
    assert b"ACTORLEARNER_NOTIFY_FD" not in Path("/proc/self/environ").read_bytes()
    assert role.fork.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        role.fork.wait(0.01)
    role.fork.send_signal(signal.SIGTERM)
    assert role.fork.wait(30) == 143


def test_a_killed_fork_has_its_signal_as_exit_code_and_others_live_on(
    server: ForkServer, directory: RunDirectory, free_port: int
) -> None:
    role = Role(server, directory, free_port)
    role.fork.kill()
    assert role.fork.wait(30) == -signal.SIGKILL
    assert refused(server, directory).wait(60) == 2


def test_forks_die_with_the_server(tmp_path: Path, directory: RunDirectory, free_port: int) -> None:
    server = ForkServer(tmp_path / "fork-server.log")
    role = Role(server, directory, free_port)
    pid = role.fork.pid
    server.kill()
    assert not server.alive
    assert role.fork.wait(10) == -signal.SIGKILL
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the fork to be gone")
    assert refused(server, directory).wait(10) == -signal.SIGKILL  # A late request has ended, too.


def test_a_signal_before_the_imports_are_done_ends_all(tmp_path: Path, directory: RunDirectory) -> None:
    server = ForkServer(tmp_path / "fork-server.log")
    forks = [refused(server, directory) for _ in range(3)]
    forks[0].send_signal(signal.SIGTERM)
    assert [fork.wait(10) for fork in forks] == [-signal.SIGKILL] * 3
    with pytest.raises(ProcessLookupError):
        _ = forks[1].pid
    assert not server.alive
    assert server.failure == ""  # It was killed.


def test_files_in_the_working_directory_do_not_take_the_place_of_libraries(
    tmp_path: Path, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise AssertionError")
    monkeypatch.chdir(tmp_path)
    server = ForkServer(tmp_path / "fork-server.log")
    assert refused(server, directory).wait(60) == 2
    assert server.failure == ""
    server.kill()


def test_a_failed_import_is_the_failure_of_the_server(
    tmp_path: Path, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reverb.py").write_text("raise ImportError('undefined symbol')")
    monkeypatch.syspath_prepend(tmp_path)
    server = ForkServer(tmp_path / "fork-server.log")
    assert refused(server, directory).wait(60) == -signal.SIGKILL
    assert server.failure == "exit code 1"
    assert server.log.read_text().splitlines()[-1] == "ImportError: undefined symbol"
