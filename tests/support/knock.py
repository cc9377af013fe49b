"""What a client gets from a port. Run in containers as well, and so with nothing but Python's own modules."""

import json
import socket
import ssl
import sys

_TIMEOUT_S = 30.0
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
_SETTINGS = 4  # The kind of frame that a gRPC server begins with.


def plain(host: str, port: int) -> str:
    """What comes back without TLS: `served`, or what went wrong."""
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_S) as connection:
            connection.sendall(_HELLO)
            return _read(connection)
    except ConnectionResetError:
        return "closed"
    except ConnectionRefusedError:
        return "refused"
    except socket.gaierror:
        return "no such host"


def tls(host: str, port: int, folder: str = "", file: str = "") -> str:
    """What comes back by TLS: `served`, or what went wrong.

    Shows the certificate of a folder or of a file, if one is given. Says nothing but what TLS does: the
    server begins, and one that refuses is not cut short.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if file:
        context.load_cert_chain(file)
    if folder:
        context.load_cert_chain(f"{folder}/own.crt", f"{folder}/own.key")
    try:
        with (
            socket.create_connection((host, port), timeout=_TIMEOUT_S) as connection,
            context.wrap_socket(connection) as secret,
        ):
            return _read(secret)
    except ssl.SSLError as error:
        return error.reason


def _read(connection: socket.socket) -> str:
    received = connection.recv(9)
    if not received:
        return "closed"
    return "served" if received[3:4] == bytes([_SETTINGS]) else f"received {received!r}"


if __name__ == "__main__":
    print(json.dumps([globals()[kind](*rest) for kind, *rest in json.loads(sys.argv[1])]))
