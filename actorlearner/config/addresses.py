"""Reads ports and addresses from text."""

import ipaddress
import re

HIGHEST_PORT = 65_535

_ADDRESS = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]+):(?P<port>[0-9]+)")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII | re.IGNORECASE)
_MAX_HOST_LENGTH = 253


def read_port(text: str) -> int:
    """Returns a port.

    Raises:
      ValueError: the text is not a port; the message says what is allowed.
    """
    if not re.fullmatch("[0-9]{1,5}", text) or not 1 <= int(text) <= HIGHEST_PORT:
        raise ValueError(f"an integer from 1 to {HIGHEST_PORT}")
    return int(text)


def read_address(text: str) -> str:
    """Returns `text` if it is HOST:PORT with a name, an IPv4 address, or an IPv6 address in brackets.

    Raises:
      ValueError: it is not; the message says what is allowed.
    """
    match = _ADDRESS.fullmatch(text)
    try:
        read_port(match["port"] if match else "")
    except ValueError:
        raise ValueError(f"HOST:PORT with a port from 1 to {HIGHEST_PORT}") from None
    if not match or not _is_host(match["host"]):
        raise ValueError("HOST:PORT with a host name, an IPv4 address, or an IPv6 address in brackets")
    return text


def read_addresses(text: str) -> tuple[str, ...]:
    """Returns one or more different HOST:PORT that are separated by commas.

    Raises:
      ValueError: the text has another form; the message says what is allowed.
    """
    addresses = tuple(read_address(part) for part in text.split(","))
    if len(set(addresses)) < len(addresses):
        raise ValueError("each HOST:PORT only once")
    return addresses


def split_address(text: str) -> tuple[str, int]:
    """Returns host and port as sockets take them: an IPv6 address without brackets.

    Raises:
      ValueError: as `read_address` does.
    """
    host, _, number = read_address(text).rpartition(":")
    return host.strip("[]"), int(number)


def join_address(host: str, number: int) -> str:
    """Returns HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"


def _is_host(host: str) -> bool:
    try:
        if host.startswith("["):
            return bool(ipaddress.IPv6Address(host[1:-1]))
        if re.fullmatch(r"[0-9.]+", host):
            return bool(ipaddress.IPv4Address(host))
    except ValueError:
        return False
    labels = host.removesuffix(".").split(".")
    return len(host) <= _MAX_HOST_LENGTH and all(_LABEL.fullmatch(label) for label in labels)
