"""Connects to ports as strangers do. Containers run it too, so it imports only the standard library."""

import json
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor

_TIMEOUT_S = 30.0
_SCAN_TIMEOUT_S = 3.0
_PORTS = range(1, 65536)
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
_SETTINGS = 4  # The kind of frame that a gRPC server begins with.


def plain(host: str, port: int) -> str:
    """Returns the outcome without TLS: `served`, or what went wrong."""
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_S) as connection:
            connection.sendall(_HELLO)
            return _read(connection)
    except ConnectionResetError:
        return "closed"
    except ConnectionRefusedError:
        return "refused"


def tls(host: str, port: int, file: str = "") -> str:
    """Returns the outcome by TLS: `served`, or what went wrong.

    Shows the certificate of a file, if one is given. Sends nothing but what TLS sends: the server begins, and
    one that refuses is not cut short.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if file:
        context.load_cert_chain(file)
    try:
        with (
            socket.create_connection((host, port), timeout=_TIMEOUT_S) as connection,
            context.wrap_socket(connection) as secret,
        ):
            return _read(secret)
    except ssl.SSLError as error:
        return error.reason
    except ConnectionResetError:
        return "closed"


def stock(host: str, port: int) -> str:
    """Returns the outcome of Reverb's own client: `served` or `refused`."""
    import reverb

    try:
        reverb.Client(f"{host}:{port}").server_info(timeout=5)
    except (reverb.errors.DeadlineExceededError, RuntimeError):
        return "refused"
    return "served"


def scan(host: str) -> list[int]:
    """Returns the TCP ports that accept connections."""

    def accepts(port: int) -> bool:
        try:
            socket.create_connection((host, port), timeout=_SCAN_TIMEOUT_S).close()
        except OSError:
            return False
        return True

    with ThreadPoolExecutor(64) as pool:
        return [port for port, accepted in zip(_PORTS, pool.map(accepts, _PORTS), strict=True) if accepted]


def _read(connection: socket.socket) -> str:
    received = connection.recv(9)
    if not received:
        return "closed"
    return "served" if received[3:4] == bytes([_SETTINGS]) else f"received {received!r}"


if __name__ == "__main__":
    print(json.dumps([globals()[kind](*rest) for kind, *rest in json.loads(sys.argv[1])]))
