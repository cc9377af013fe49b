"""Several hosts on this machine, each with a network and an address of its own, and cables that can go bad.

A host is a network namespace with a loopback and one TAP interface. The other ends of those are file
descriptors of this process, which is the switch between them: it decides what each frame has to go through.
No name, interface or route of it is in the machine's own network, and all of it goes with this process,
however that ends.

`tc netem` would do for delay and loss, but not every kernel has it.
"""

import contextlib
import dataclasses
import fcntl
import heapq
import itertools
import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from actorlearner.network.private_network import PrivateNetwork, RefusedError

_INTERFACE = Path(__file__).with_name("host_interface.py")
_MAKE_TIMEOUT_S = 30.0
_TUNSETCARRIER = 0x400454E2
_LONGEST_FRAME = 1 << 16
_JOIN_TIMEOUT_S = 10.0

_ETHERNET_BYTES = 14
_ETHERTYPE, _PROTOCOL = slice(12, 14), 23
_IPV4, _SYN = b"\x08\x00", 0x2


@dataclasses.dataclass
class Cable:
    """What becomes of the frames on their way from a host to the switch, and on their way back.

    There is a firewall in it, which lets those of a TCP connection pass if it has seen how that began.

    Attributes:
      delay_s: how long each takes, in either direction.
      loss: the share that does not arrive, in either direction.
      silent: whether none arrives, of which the host notices nothing.
    """

    delay_s: float = 0.0
    loss: float = 0.0
    silent: bool = False
    _connections: set[frozenset[bytes]] = dataclasses.field(default_factory=set)

    def forget(self) -> None:
        """Makes the firewall forget all connections; neither end is notified."""
        self._connections.clear()

    def passes(self, frame: bytes) -> bool:
        """Whether the firewall lets a frame pass."""
        if frame[_ETHERTYPE] != _IPV4 or frame[_PROTOCOL] != socket.IPPROTO_TCP:
            return True
        tcp = _ETHERNET_BYTES + 4 * (frame[_ETHERNET_BYTES] & 0xF)
        ends = (frame[26:30] + frame[tcp : tcp + 2], frame[30:34] + frame[tcp + 2 : tcp + 4])
        if frame[tcp + 13] & _SYN:
            self._connections.add(frozenset(ends))
        return frozenset(ends) in self._connections


class Host:
    """A host: processes enter its `network` between fork and exec.

    Attributes:
      address: its IPv4 address, which the other hosts reach.
      cable: to the switch; may be changed at any time.
    """

    def __init__(self, address: str) -> None:
        """Makes it.

        Raises:
          RefusedError: the system does not allow it.
        """
        self.address = address
        self.cable = Cable()
        self.network = PrivateNetwork()
        try:
            self.frames = _interface(self.network, address)
        except BaseException:
            self.network.close()
            raise

    def unplug(self) -> None:
        """Takes the cable out: nothing passes, and the host sees that its link is down."""
        self._set_carrier(False)

    def plug_in(self) -> None:
        """Puts the cable back."""
        self._set_carrier(True)

    def _set_carrier(self, there: bool) -> None:
        fcntl.ioctl(self.frames, _TUNSETCARRIER, struct.pack("i", there))
        self.cable.silent = not there

    def close(self) -> None:
        os.close(self.frames)
        self.network.close()


def _interface(network: PrivateNetwork, address: str) -> int:
    """The switch's end of a new interface in a network."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        made = subprocess.run(
            [sys.executable, "-I", "-S", str(_INTERFACE), address, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            preexec_fn=network.enter,
            capture_output=True,
            text=True,
            timeout=_MAKE_TIMEOUT_S,
            check=False,
        )
        if made.returncode != 0:
            raise RefusedError(made.stderr.strip().splitlines()[-1])
        _, (frames,), _, _ = socket.recv_fds(ours, 16, 1)
    os.set_blocking(frames, False)
    return frames


class Switch:
    """Passes frames on between hosts, through their cables."""

    def __init__(self, hosts: list[Host], seed: int = 0) -> None:
        """Starts at once; `seed` decides which frames are lost."""
        self._hosts = {host.frames: host for host in hosts}
        self._random = random.Random(seed)
        self._of: dict[bytes, Host] = {}
        self._due: list[tuple[float, int, Host, bytes]] = []
        self._numbers = itertools.count()
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._run, name="switch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it; the hosts stay."""
        os.close(self._end)
        self._thread.join(_JOIN_TIMEOUT_S)
        os.close(self._ended)

    def _run(self) -> None:
        while True:
            wait_s = max(0.0, self._due[0][0] - time.monotonic()) if self._due else None
            ready, _, _ = select.select([self._ended, *self._hosts], [], [], wait_s)
            if self._ended in ready:
                return
            for descriptor in ready:
                self._take(self._hosts[descriptor])
            while self._due and self._due[0][0] <= time.monotonic():
                _, _, host, frame = heapq.heappop(self._due)
                with contextlib.suppress(BlockingIOError, OSError):  # Lost, as on a host that cannot keep up.
                    os.write(host.frames, frame)

    def _take(self, source: Host) -> None:
        """Reads a frame and schedules its arrival, or drops it."""
        try:
            frame = os.read(source.frames, _LONGEST_FRAME)
        except OSError:
            return
        target, sender = frame[:6], frame[6:12]
        self._of[sender] = source
        if self._is_lost(source.cable, frame):
            return
        others = [host for host in self._hosts.values() if host is not source]
        for host in [self._of[target]] if target in self._of else others:
            if not self._is_lost(host.cable, frame):
                due = time.monotonic() + source.cable.delay_s + host.cable.delay_s
                heapq.heappush(self._due, (due, next(self._numbers), host, frame))

    def _is_lost(self, cable: Cable, frame: bytes) -> bool:
        if cable.silent or (cable.loss > 0 and self._random.random() < cable.loss):
            return True
        return not cable.passes(frame)


@contextlib.contextmanager
def connected_hosts(count: int) -> Iterator[list[Host]]:
    """So many hosts, 10.77.0.1 and on, that reach each other and nothing else.

    Raises:
      RefusedError: the system does not allow it; the message says why.
    """
    with contextlib.ExitStack() as stack:
        hosts = []
        for number in range(1, count + 1):
            hosts.append(Host(f"10.77.0.{number}"))
            stack.callback(hosts[-1].close)
        switch = Switch(hosts)
        stack.callback(switch.close)
        yield hosts
