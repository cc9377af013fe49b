"""The network of a local run: a private loopback interface, or the reason why there is none."""

import socket
import subprocess
import sys

import pytest

from actorlearner.network import private_network
from actorlearner.network.private_network import HOST, PRIVATE, PrivateNetwork, RefusedError, choose_network


@pytest.fixture(name="network")
def _network() -> PrivateNetwork:
    try:
        return PrivateNetwork()
    except RefusedError as error:
        pytest.skip(f"this system refuses a private network: {error}")


def _python(code: str, network: PrivateNetwork | None) -> str:
    enter = network.enter if network else None
    done = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=enter, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_processes_in_it_reach_each_other_and_nobody_else_does(
    network: PrivateNetwork, free_port: int
) -> None:
    connect = "import socket; print(socket.socket().connect_ex(('127.0.0.1', {})))"
    # A port that Linux chooses in the network may be another test's outside of it.
    serve = f"import socket; s = socket.create_server(('', {free_port})); print(flush=True); s.accept()"
    with subprocess.Popen(
        [sys.executable, "-c", serve], preexec_fn=network.enter, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "\n"
        assert socket.socket().connect_ex(("127.0.0.1", free_port)) != 0
        assert _python(connect.format(free_port), network) == "0"
        assert server.wait(timeout=60) == 0
    with socket.create_server(("127.0.0.1", 0)) as outside:
        port = outside.getsockname()[1]
        assert _python(connect.format(port), None) == "0"
        assert _python(connect.format(port), network) != "0"
    network.close()


def test_files_stay_those_of_the_same_user(network: PrivateNetwork) -> None:
    who = "import os; print(os.getuid(), os.geteuid(), os.stat(os.curdir).st_uid)"
    assert _python(who, network) == _python(who, None)
    network.close()


def test_a_refusal_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_network, "__file__", "/dev/null")  # The maker prints nothing.
    with pytest.raises(RefusedError, match="the process that makes it died"):
        PrivateNetwork()
    network, line = choose_network(PRIVATE)
    assert network is None
    assert line.startswith("network: the replay server's port is open to everybody")
    assert line.endswith("a private network is refused: the process that makes it died")


def test_the_open_network_is_announced() -> None:
    network, line = choose_network(HOST)
    assert network is None
    assert line.startswith("network: the replay server's port is open to everybody who can reach")
