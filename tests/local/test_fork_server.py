"""Forks of a process that has imported everything: their properties and their ends."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.agents.configuration import load_config
from actorlearner.local import fork_server
from actorlearner.local.child import Child
from actorlearner.local.fork_server import ForkServer, Options
from actorlearner.records.run_directory import RunDirectory
from tests.support.processes import wait_for

_WAIT_S = 150.0
"""Includes the imports of a fork server."""

_SIMULATOR = """
import os, pathlib, subprocess
def start_and_crash(pid_file):
    process = subprocess.Popen(["/bin/sleep", "1000"])
    pathlib.Path(pid_file).write_text(str(process.pid))
    os._exit(7)
"""


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server is started; a file there must not take the place of Python's module `random`."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "random.py").write_text("raise AssertionError")
    (folder / "simulator.py").write_text(_SIMULATOR)
    return folder


@pytest.fixture(scope="module", name="servers")
def _servers() -> Iterator[list[ForkServer]]:
    servers: list[ForkServer] = []
    yield servers
    for server in servers:
        server.kill()


@pytest.fixture
def server(folder: Path, servers: list[ForkServer]) -> ForkServer:
    """The same one for all tests until a test kills it: its imports take seconds."""
    if not servers or not servers[-1].alive:
        with contextlib.chdir(folder):
            servers.append(ForkServer(folder / "fork-server.log"))
    return servers[-1]


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


def fork(server: ForkServer, role: str, directory: RunDirectory, options: Options) -> Child:
    return Child(role, lambda fd: server.fork(role, role, directory, options, fd), directory.log(role))


def refused(server: ForkServer, directory: RunDirectory) -> Child:
    """Forks a role that ends by itself: its run directory holds no configuration."""
    empty = RunDirectory(directory.path.parent / "empty")
    return fork(server, "eval-actor", empty, {"replay_address": ["a:1"]})


def serving(server: ForkServer, directory: RunDirectory, port: int) -> Child:
    """Forks a replay server, which serves until it is stopped."""
    directory.prepare(load_config("sac_pendulum"))
    return fork(server, "replay-server", directory, {"port": port})


def exit_code(child: Child) -> int | None:
    child.wait(_WAIT_S)
    return child.exit_code


def test_a_fork_without_a_configuration_exits_with_2_and_logs_why(
    server: ForkServer, directory: RunDirectory
) -> None:
    assert exit_code(refused(server, directory)) == 2
    empty = RunDirectory(directory.path.parent / "empty")
    assert str(empty.config) in empty.log("eval-actor").read_text()


def test_a_refused_configuration_is_reported(server: ForkServer, directory: RunDirectory) -> None:
    directory.path.mkdir()
    directory.config.write_text("learn: {batch_size: -1}")
    child = fork(server, "learner", directory, {"replay_address": ["a:1"]})
    assert exit_code(child) == 2
    child.receive()
    assert "learn.batch_size" in child.error
    assert not child.may_be_restarted


def test_a_role_is_a_process_of_its_own(server: ForkServer, directory: RunDirectory, free_port: int) -> None:
    role = serving(server, directory, free_port)
    wait_for(lambda: role.receive() or role.ready, "the role to be ready")
    pid = role.pid
    assert os.getsid(pid) == pid
    assert Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0") == b"replay-server (actorlearner)"
    assert b"ACTORLEARNER_NOTIFY_FD" not in Path("/proc/self/environ").read_bytes()
    assert role.exit_code is None
    assert not role.wait(0.01)
    role.send(signal.SIGTERM)
    assert exit_code(role) == 143


def test_a_signal_to_all_processes_of_a_run_leaves_it_to_the_roles_to_save(
    server: ForkServer, directory: RunDirectory, free_port: int
) -> None:
    role = serving(server, directory, free_port)
    wait_for(lambda: role.receive() or role.ready, "the role to be ready")
    for pid in (server._process.pid, role.pid):
        os.kill(pid, signal.SIGTERM)
    assert exit_code(role) == 143
    assert server.alive


def test_processes_started_by_an_environment_die_with_its_role(
    server: ForkServer, directory: RunDirectory, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    own = ("environment.suite=simulator:start_and_crash", "environment.name=''")
    directory.prepare(load_config("sac_pendulum", [*own, f"environment.kwargs.pid_file={pid_file}"]))
    role = fork(server, "eval-actor", directory, {"replay_address": ["a:1"]})
    assert exit_code(role) == 7
    simulator = Path("/proc", pid_file.read_text())
    wait_for(lambda: not simulator.exists(), "the simulator to be gone")


def test_a_killed_fork_has_its_signal_as_exit_code_and_others_live_on(
    server: ForkServer, directory: RunDirectory, free_port: int
) -> None:
    role = serving(server, directory, free_port)
    assert role.pid  # Blocks until it is forked: a signal before would end the server.
    role.kill()
    assert role.exit_code == -signal.SIGKILL
    assert exit_code(refused(server, directory)) == 2


def test_a_signal_before_the_imports_are_done_ends_all(
    tmp_path: Path, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_server, "module_command", lambda *_: ["sleep", "1000"])  # Imports for ever.
    server = ForkServer(tmp_path / "fork-server.log")
    forks = [refused(server, directory) for _ in range(3)]
    forks[0].send(signal.SIGTERM)
    assert [exit_code(each) for each in forks] == [-signal.SIGKILL] * 3
    with pytest.raises(ProcessLookupError):
        _ = forks[1].pid
    assert not server.alive
    assert server.failure == ""  # It was killed.


def test_forks_die_with_the_server(server: ForkServer, directory: RunDirectory, free_port: int) -> None:
    role = serving(server, directory, free_port)
    pid = role.pid
    server.kill()
    assert not server.alive
    assert exit_code(role) == -signal.SIGKILL
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the fork to be gone")
    assert exit_code(refused(server, directory)) == -signal.SIGKILL  # A late request has ended, too.
