"""TLS proxy and tunnels: holders of a run's certificate get through, and nobody else."""

import os
import resource
import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from actorlearner.errors import ConfigurationError
from actorlearner.network import tls
from actorlearner.network.certificate import check_certificate, make_certificate, write_certificate
from actorlearner.network.tls import open_proxy, open_tunnels
from tests.support import knock

_TIMEOUT_S = 120.0
_SENT = os.urandom(5_000_000)


@pytest.fixture(autouse=True)
def _patient_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of gRPC connects again after a late handshake; these tests connect once, on a busy machine."""
    monkeypatch.setattr(tls, "_HANDSHAKE_S", _TIMEOUT_S)


@pytest.fixture(name="certificate")
def _certificate(tmp_path: Path) -> Path:
    write_certificate(tmp_path / "run.pem", make_certificate())
    return tmp_path / "run.pem"


@pytest.fixture(name="server")
def _server() -> Iterator[socket.socket]:
    """Listens in the place of Reverb."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(_TIMEOUT_S)
        yield server


@pytest.fixture(name="proxy")
def _proxy(server: socket.socket, certificate: Path) -> str:
    """The address of a proxy before the server."""
    listener = socket.create_server(("127.0.0.1", 0))
    open_proxy(listener, server.getsockname()[1], certificate)
    return f"127.0.0.1:{listener.getsockname()[1]}"


def _connect(tunnel: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_TIMEOUT_S)
    connection.connect(tunnel.removeprefix("unix:"))
    return connection


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(1 << 16)
        assert part, "the connection ended"
        received += part
    return bytes(received)


def test_bytes_go_through_both_ways_and_the_end_of_one_ends_the_other(
    server: socket.socket, proxy: str, certificate: Path
) -> None:
    (tunnel,) = open_tunnels([proxy], certificate)
    client = _connect(tunnel)
    served, peer = server.accept()
    assert peer[0] == "127.0.0.2"  # Reverb takes shortcuts for a client at 127.0.0.1.
    for one, other in ((client, served), (served, client)):
        sender = threading.Thread(target=one.sendall, args=(_SENT,))
        sender.start()
        assert _receive(other, len(_SENT)) == _SENT
        sender.join(_TIMEOUT_S)
    client.close()
    served.settimeout(_TIMEOUT_S)
    assert served.recv(1) == b""
    served.close()


def test_a_tunnel_can_be_entered_by_this_user_alone(proxy: str, certificate: Path) -> None:
    (tunnel,) = open_tunnels([proxy], certificate)
    path = Path(tunnel.removeprefix("unix:"))
    assert path.name == proxy  # The server's name in messages.
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_long_path_and_a_long_name_do_no_harm(
    server: socket.socket, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    listener = socket.create_server(("127.0.0.1", 0))
    open_proxy(listener, server.getsockname()[1], certificate)
    long = ".".join(["localhost", *["a" * 60] * 3])
    tunnels = open_tunnels([f"127.0.0.1:{listener.getsockname()[1]}", f"{long}:1"], certificate)
    with _connect(tunnels[0]):
        server.accept()[0].close()


def test_nobody_gets_in_without_the_runs_certificate(
    server: socket.socket, proxy: str, certificate: Path, caplog: pytest.LogCaptureFixture
) -> None:
    host, _, port = proxy.partition(":")
    assert knock.plain(host, int(port)) == "closed"
    assert knock.tls(host, int(port)) != "served"
    other = certificate.with_name("other.pem")
    write_certificate(other, make_certificate())
    assert knock.tls(host, int(port), file=str(other)) != "served"
    server.setblocking(False)
    with pytest.raises(BlockingIOError):
        server.accept()
    assert "refused a connection from 127.0.0.1" in caplog.text


def test_a_client_that_is_reset_at_once_does_no_harm(
    server: socket.socket, certificate: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()  # By a reset, before the proxy accepts it.
    open_proxy(listener, server.getsockname()[1], certificate)
    (tunnel,) = open_tunnels([f"127.0.0.1:{listener.getsockname()[1]}"], certificate)
    with _connect(tunnel) as client:
        served, _ = server.accept()
        client.sendall(b"x")
        assert served.recv(1) == b"x"
        served.close()
    assert "refused a connection from a client that has gone" in caplog.text
    assert "never retrieved" not in caplog.text


def test_a_tunnel_refuses_a_server_with_another_certificate(
    server: socket.socket, certificate: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = certificate.with_name("other.pem")
    write_certificate(other, make_certificate())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(other)
    address = f"127.0.0.1:{server.getsockname()[1]}"
    (tunnel,) = open_tunnels([address], certificate)
    with _connect(tunnel) as client:
        connection, _ = server.accept()
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(connection, server_side=True).recv(1)
        assert client.recv(1) == b""
    assert f"TLS with {address} fails, is --tls the file of its run?" in caplog.text


def test_a_tunnel_closes_connections_while_the_server_is_down_and_works_again_later(
    server: socket.socket, certificate: Path
) -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    (tunnel,) = open_tunnels([f"127.0.0.1:{listener.getsockname()[1]}"], certificate)
    with _connect(tunnel) as client:
        assert client.recv(1) == b""
    listener.listen()
    open_proxy(listener, server.getsockname()[1], certificate)
    with _connect(tunnel) as client:
        served, _ = server.accept()
        client.sendall(b"x")
        assert served.recv(1) == b"x"
        served.close()


def test_the_certificate_is_for_this_user_alone_and_no_file_is_overwritten(certificate: Path) -> None:
    assert certificate.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_certificate(certificate, make_certificate())


def test_a_certificate_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "run.pem"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # As a full disk.
    try:
        with pytest.raises(OSError, match="File too large"):
            write_certificate(path, make_certificate())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not path.exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file or directory"), (b"", "there is no certificate with its key in it")],
)
def test_a_file_without_a_certificate_is_refused(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "run.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError) as error:
        check_certificate(path)
    assert str(error.value).startswith(f"--tls: '{path}' cannot be used ({reason}); allowed: ")
