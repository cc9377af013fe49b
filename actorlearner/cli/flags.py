"""Reading what is given to flags: ports, addresses, indices, names of roles, and pictures."""

import ipaddress
import re
from pathlib import Path

from actorlearner.process.health_check import ROLES

HIGHEST_PORT = 65_535

PICTURES = (".png", ".svg")
"""The suffixes of files that pictures are written to."""

_ADDRESS = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]+):(?P<port>[0-9]+)")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII | re.IGNORECASE)
_LONGEST_HOST = 253


def port(text: str) -> int:
    """Reads a port.

    Raises:
      ValueError: it is none; the message says what is allowed.
    """
    if not re.fullmatch("[0-9]{1,5}", text) or not 1 <= int(text) <= HIGHEST_PORT:
        raise ValueError(f"an integer from 1 to {HIGHEST_PORT}")
    return int(text)


def address(text: str) -> str:
    """Reads HOST:PORT, where HOST is a name, an IPv4 address, or an IPv6 address in brackets.

    Raises:
      ValueError: it is not of that form; the message says what is allowed.
    """
    match = _ADDRESS.fullmatch(text)
    try:
        port(match["port"] if match else "")
    except ValueError:
        raise ValueError(f"HOST:PORT with a port from 1 to {HIGHEST_PORT}") from None
    if not match or not _is_host(match["host"]):
        raise ValueError("HOST:PORT with a host name, an IPv4 address, or an IPv6 address in brackets")
    return text


def host_and_port(text: str) -> tuple[str, int]:
    """Splits HOST:PORT, as `address` accepts it, into what sockets take: an IPv6 address has no brackets.

    Raises:
      ValueError: as `address` does.
    """
    host, _, number = address(text).rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(number)


def join_address(host: str, number: int) -> str:
    """Returns HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"


def addresses(text: str) -> tuple[str, ...]:
    """Reads one or more HOST:PORT, with commas between them and each only once.

    Raises:
      ValueError: they are not; the message says what is allowed.
    """
    read = tuple(address(part) for part in text.split(","))
    if len(set(read)) < len(read):
        raise ValueError("each HOST:PORT only once")
    return read


def index(text: str) -> int:
    """Reads a number counted from 0.

    Raises:
      ValueError: it is none; the message says what is allowed.
    """
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError("an integer from 0")
    return int(text)


def count(text: str) -> int:
    """Reads how many of something there are to be.

    Raises:
      ValueError: it is no number from 1; the message says what is allowed.
    """
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise ValueError("an integer from 1")
    return int(text)


def role(text: str) -> str:
    """Reads the name of a role.

    Raises:
      ValueError: it is none of ROLES; the message says what is allowed.
    """
    if text not in ROLES:
        raise ValueError(f"{', '.join(ROLES[:-1])} or {ROLES[-1]}")
    return text


def picture(text: str) -> Path:
    """Reads the file that a picture is to be written to.

    Raises:
      ValueError: its suffix is none of PICTURES; the message says what is allowed.
    """
    if Path(text).suffix.lower() not in PICTURES:
        raise ValueError(f"a file that ends in {' or '.join(PICTURES)}")
    return Path(text)


def _is_host(host: str) -> bool:
    try:
        if host.startswith("["):
            ipaddress.IPv6Address(host[1:-1])
            return True
        if re.fullmatch(r"[0-9.]+", host):
            ipaddress.IPv4Address(host)
            return True
    except ValueError:
        return False
    labels = host.removesuffix(".").split(".")
    return len(host) <= _LONGEST_HOST and all(_LABEL.fullmatch(label) for label in labels)
