#!/usr/bin/env python3
"""Starts a role in a container: adds the run directory, and the index of a collect actor.

The run directory may be a volume in which a killed container left its heartbeat. A probe would believe it
until the role writes its own.

All collect actors start with the same command, but each running one needs a different index. It is the number
in the container's name, which docker-compose counts from 1 on each machine, less one, plus FIRST_ACTOR_INDEX.
The network's name server knows the name. Without such a name, the index comes from the container's address,
or from POD_IP if that is set.
"""

import contextlib
import hashlib
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from dns.exception import DNSException
from dns.resolver import Resolver

RUN_DIR = "/run_dir"

_ROLES = ("replay-server", "collect-actor", "eval-actor", "learner")
_NAME_SERVER = ("127.0.0.11", 53)  # Docker's, in every network with names.
_TIMEOUT_S = 10.0
_INDICES = 1_000_000_000  # The number of values that --actor_index accepts.
_USAGE_ERROR = 2
_NUMBERED = re.compile(r".*[_-]collect-actor[_-]([1-9][0-9]{0,8})", re.ASCII)


def main(arguments: Sequence[str]) -> None:
    """Replaces this process by the container's command."""
    mark_heartbeats(Path(RUN_DIR, "health"))
    full = command(arguments)
    os.execvp(full[0], full)


def mark_heartbeats(folder: Path) -> None:
    """Marks the heartbeats of a folder as those of roles that are not ready; a running role corrects that.

    They stay, because a role counts its restarts by them. They keep their size: the disk may be full.
    """
    for path in folder.glob("*.json"):
        with contextlib.suppress(OSError), path.open("r+b") as file:
            left = file.read()
            file.seek(0)
            file.write(left.replace(b'"ready": true', b'"ready":false'))


def command(arguments: Sequence[str]) -> list[str]:
    """Returns the command that a container with these arguments runs."""
    if not arguments or arguments[0] not in _ROLES:
        return ["actorlearner", *arguments]
    role, *rest = arguments
    defaults = ["--run_dir", RUN_DIR]  # Before the container's own arguments, of which the last one counts.
    if role == "collect-actor" and not any(re.match("--actor_index(=|$)", argument) for argument in rest):
        defaults += ["--actor_index", str(own_index())]  # Another role's container may have no network.
    return ["actorlearner", role, *defaults, *rest]


def own_index() -> int:
    """Returns the index of the collect actor in this container; exits with 2 if it cannot be found.

    Blocks for up to ten seconds.
    """
    first = os.environ.get("FIRST_ACTOR_INDEX", "0")
    if not re.fullmatch("[0-9]{1,8}", first):
        _refuse(f"FIRST_ACTOR_INDEX {first!r}: has to be an integer from 0")
    address = os.environ.get("POD_IP") or _own_address()
    try:
        ipaddress.ip_address(address)
    except ValueError:
        _refuse(f"POD_IP {address!r}: has to be an IPv4 or IPv6 address")
    return index(address, [] if "POD_IP" in os.environ else names_of(address), int(first))


def index(address: str, names: Sequence[str], first: int = 0) -> int:
    """Returns the index of the collect actor in a container.

    Without a numbered name, it is the last 24 bits of an IPv4 address, which differ between all containers
    of a network as large as 10.0.0.0/8. The end of an IPv6 address may be the same on two nodes, so there it
    is a hash of the whole address: two of 1,000 actors have the same index with a probability of 0.0005.

    Args:
      address: the container's IPv4 or IPv6 address.
      names: the container's names in its network.
      first: the index of the first numbered container of this machine.
    """
    for name in names:
        numbered = _NUMBERED.fullmatch(name.partition(".")[0])
        if numbered:
            return first + int(numbered[1]) - 1
    packed = ipaddress.ip_address(address).packed
    if len(packed) == 4:
        return int.from_bytes(packed[1:], "big")
    return int.from_bytes(hashlib.sha256(packed).digest(), "big") % _INDICES


def _own_address() -> str:
    """Returns the address of this container's host name: IPv4 if there is one, else IPv6."""
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        _refuse(f"the address of {name!r} is not known ({error.strerror}): give --actor_index")
    _, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return str(address[0]).partition("%")[0]  # Without the interface of a link-local address.


def names_of(address: str) -> list[str]:
    """Returns the names that Docker's name server has for an address; none without such a server.

    The system's own functions would answer from /etc/hosts. Blocks for up to ten seconds.
    """
    resolver = Resolver(configure=False)
    resolver.nameservers, resolver.port = [_NAME_SERVER[0]], _NAME_SERVER[1]
    try:
        found = resolver.resolve_address(address, lifetime=_TIMEOUT_S)
    except DNSException:
        return []
    return [pointer.target.to_text(omit_final_dot=True) for pointer in found]


def _refuse(line: str) -> NoReturn:
    print(line, file=sys.stderr)
    sys.exit(_USAGE_ERROR)


if __name__ == "__main__":
    main(sys.argv[1:])
